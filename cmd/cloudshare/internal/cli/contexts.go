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

// Contexts is a small file of the user that says which token goes to which address: `dev` and `login` write it, so that
// the other commands need no flag beside it. It also has the user's names for addresses. Its zero value holds nothing.
type Contexts struct{ path string }

// Context is how to ask one broker: with a token, or with the one in a file, or with those of a login.
type Context struct {
	Token     string `json:"token,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
	Login     *Login `json:"login,omitempty"`
	// CAFile and Pin are by what an https broker is trusted: authorities in a file, or the SHA-256 of its key in
	// hexadecimal digits; else the token's own pin, else the system's authorities.
	CAFile string `json:"ca_file,omitempty"`
	Pin    string `json:"pin,omitempty"`
}

// with returns the context with another login, or none, in the place of what proved who asks. By what the broker is
// trusted stays.
func (c Context) with(l *Login) Context { return Context{Login: l, CAFile: c.CAFile, Pin: c.Pin} }

// contextsFile is the form of the file: contexts by http://HOST:PORT or https://HOST:PORT, addresses by their names.
type contextsFile struct {
	Contexts map[string]Context `json:"contexts"`
	Names    map[string]string  `json:"names,omitempty"`
	Current  string             `json:"current,omitempty"` // name of the one to ask without --addr
}

// put keeps the context of an address, if there is anything in it.
func (f *contextsFile) put(addr string, c Context) {
	if c == (Context{}) {
		delete(f.Contexts, f.at(addr))
		return
	}
	f.Contexts[f.at(addr)] = c
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

// place returns an address as the file names it, "" for what is none. A name for the loopback is the loopback; an
// address without a scheme is http there, and https elsewhere.
func place(addr string) string {
	if !strings.Contains(addr, "://") {
		addr = schemes(addr)[0] + addr
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
	return c.change(func(f *contextsFile) error {
		all := f.Contexts
		maps.DeleteFunc(all, func(_ string, known Context) bool {
			_, err := os.Stat(known.TokenFile)
			return known.TokenFile != "" && errors.Is(err, os.ErrNotExist)
		})
		for addr, file := range files {
			all[place(addr)] = Context{TokenFile: file}
		}
		return nil
	})
}

// Remove takes back what Add did, but for addresses that somebody else has taken since.
func (c Contexts) Remove(files map[string]string) error {
	return c.change(func(f *contextsFile) error {
		for addr, file := range files {
			if f.Contexts[place(addr)].TokenFile == file {
				delete(f.Contexts, place(addr))
			}
		}
		return nil
	})
}

func (c Contexts) read() (contextsFile, error) {
	f := contextsFile{Contexts: map[string]Context{}, Names: map[string]string{}}
	if c.path == "" {
		return f, nil
	}
	text, err := os.ReadFile(c.path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("read contexts: %w", err)
	}
	if json.Unmarshal(text, &f) != nil || f.Contexts == nil || f.Names == nil {
		return f, fmt.Errorf("read contexts: %s is damaged: remove it, and name the token with --token-file", c.path)
	}
	return f, nil
}

// change replaces the file, while no other process does.
func (c Contexts) change(how func(*contextsFile) error) error {
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
	f, err := c.read()
	if err != nil {
		return err
	}
	if err = how(&f); err != nil {
		return err
	}
	text, err := json.MarshalIndent(f, "", "  ")
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
