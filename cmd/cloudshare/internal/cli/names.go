package cli

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ContextVariable names the broker to ask, by a name of the user's contexts.
const ContextVariable = "CLOUDSHARE_CONTEXT"

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// chooseAddr sets the address of the broker to ask: of flags before the environment, and that before the current
// context; an address before a name.
func (a *App) chooseAddr(byFlag bool) error {
	if byFlag && a.Context != "" {
		return Usage("--addr and --context: both name a broker: drop one")
	}
	name, from := a.Context, "--context"
	if name == "" && (byFlag || a.getenv("CLOUDSHARE_ADDR") != "") {
		return nil
	}
	if name == "" {
		name, from = a.getenv(ContextVariable), ContextVariable
	}
	f, err := a.Contexts().read()
	if name == "" {
		if at, ok := f.Names[f.Current]; ok && err == nil { // a damaged file is told where a token of it is needed
			a.Addr = at
		}
		return nil
	}
	if err != nil {
		return err
	}
	at, ok := f.Names[name]
	if !ok {
		return Usage("%s %.80q: there is no such context: see cloudshare context list", from, name)
	}
	a.Addr = at
	return nil
}

// Named is a context with its name, without anything secret.
type Named struct {
	Name    string `json:"name"`
	Addr    string `json:"addr"`
	Current bool   `json:"current"`
	// Auth is how it proves who asks: login, token, file, or nothing.
	Auth string `json:"auth,omitempty"`
}

// List returns the contexts that have names, by these.
func (c Contexts) List() ([]Named, error) {
	f, err := c.read()
	if err != nil {
		return nil, err
	}
	out := []Named{}
	for _, name := range slices.Sorted(maps.Keys(f.Names)) {
		known := f.Contexts[f.at(f.Names[name])]
		n := Named{Name: name, Addr: f.Names[name], Current: name == f.Current}
		switch {
		case known.Login != nil:
			n.Auth = "login"
		case known.TokenFile != "":
			n.Auth = "file"
		case known.Token != "":
			n.Auth = "token"
		}
		out = append(out, n)
	}
	return out, nil
}

// Name gives an address a name, and a token's file if one is named. The first name is the current one.
func (c Contexts) Name(name, addr string, by Context) error {
	if by.Pin != "" {
		if _, err := parsePin(by.Pin); err != nil {
			return Usage("%w", err)
		}
	}
	switch {
	case strings.HasPrefix(strings.ToLower(addr), "http://") && (by.Pin != "" || by.CAFile != ""):
		return Usage("%s is plain HTTP, and has neither key nor authority to trust: use https:// in its address", addr)
	case c.path == "":
		return Usage("contexts are kept in $XDG_CONFIG_HOME or $HOME/.config: set HOME")
	case !contextName.MatchString(name):
		return Usage("context %.80q: a name has 1 to 63 letters, digits, '.', '_' or '-', and begins with a letter or digit", name)
	}
	return c.change(func(f *contextsFile) error {
		if at, known := f.Names[name]; known && at != addr {
			return Usage("context %s is there already, for %s: remove it first, or take another name", name, at)
		}
		f.Names[name] = addr
		if by != (Context{}) {
			f.put(addr, by)
		}
		if f.Current == "" {
			f.Current = name
		}
		return nil
	})
}

// Use makes a name the current one.
func (c Contexts) Use(name string) error {
	return c.change(func(f *contextsFile) error {
		if _, ok := f.Names[name]; !ok {
			return noContext(name)
		}
		f.Current = name
		return nil
	})
}

// Forget removes a name, and what is kept of its address if no other name has that.
func (c Contexts) Forget(name string) error {
	return c.change(func(f *contextsFile) error {
		at, ok := f.Names[name]
		if !ok {
			return noContext(name)
		}
		delete(f.Names, name)
		if f.Current == name {
			f.Current = ""
		}
		for _, other := range f.Names {
			if f.at(other) == f.at(at) {
				return nil
			}
		}
		delete(f.Contexts, f.at(at))
		return nil
	})
}

func noContext(name string) error {
	return Usage("context %.80q: there is none of that name: see cloudshare context list", name)
}
