package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Contexts is a small file of the user that says which token goes to which address: `dev` writes it, so that the other
// commands need no flag beside it. Its zero value holds nothing.
type Contexts struct{ path string }

// Context is how to ask one broker: with a token, or with the one in a file.
type Context struct {
	Token     string `json:"token,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
	// CAFile and Pin are by what an https broker is trusted: authorities in a file, or the SHA-256 of its key in
	// hexadecimal digits; else the token's own pin, else the system's authorities.
	CAFile string `json:"ca_file,omitempty"`
	Pin    string `json:"pin,omitempty"`
}

// contextsFile is the form of the file: contexts by http://HOST:PORT or https://HOST:PORT.
type contextsFile struct {
	Contexts map[string]Context `json:"contexts"`
}

// Contexts returns those of the user: in $XDG_CONFIG_HOME, else in $HOME/.config. Without either there are none.
func (a *App) Contexts() Contexts {
	dir := a.getenv("XDG_CONFIG_HOME")
	if home := a.getenv("HOME"); !filepath.IsAbs(dir) && filepath.IsAbs(home) {
		dir = filepath.Join(home, ".config")
	}
	if !filepath.IsAbs(dir) {
		return Contexts{}
	}
	return Contexts{filepath.Join(dir, "cloudshare", "contexts.json")}
}

// place returns an address as the file names it, "" for what is none. A name for the loopback is the loopback.
func place(addr string) string {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" {
		return ""
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return u.Scheme + "://" + net.JoinHostPort(host, port)
}

// Add has the token in a file go to an address, for each of them. Contexts whose files are gone are dropped.
func (c Contexts) Add(files map[string]string) error {
	return c.change(func(all map[string]Context) {
		maps.DeleteFunc(all, func(_ string, known Context) bool {
			_, err := os.Stat(known.TokenFile)
			return known.TokenFile != "" && errors.Is(err, os.ErrNotExist)
		})
		for addr, file := range files {
			all[place(addr)] = Context{TokenFile: file}
		}
	})
}

// Remove takes back what Add did, but for addresses that somebody else has taken since.
func (c Contexts) Remove(files map[string]string) error {
	return c.change(func(all map[string]Context) {
		for addr, file := range files {
			if all[place(addr)].TokenFile == file {
				delete(all, place(addr))
			}
		}
	})
}

func (c Contexts) read() (map[string]Context, error) {
	text, err := os.ReadFile(c.path)
	if errors.Is(err, os.ErrNotExist) {
		return map[string]Context{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read contexts: %w", err)
	}
	var f contextsFile
	if json.Unmarshal(text, &f) != nil {
		return nil, fmt.Errorf("read contexts: %s is damaged: remove it, and name the token with --token-file", c.path)
	}
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
	}
	return f.Contexts, nil
}

// change replaces the file, while no other process does.
func (c Contexts) change(how func(map[string]Context)) error {
	if c.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	lock, err := os.OpenFile(c.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	defer lock.Close()
	if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock contexts: %w", err)
	}
	all, err := c.read()
	if err != nil {
		return err
	}
	how(all)
	text, err := json.MarshalIndent(contextsFile{all}, "", "  ")
	if err == nil {
		err = os.WriteFile(c.path+".new", append(text, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(c.path+".new", c.path)
	}
	if err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	return nil
}
