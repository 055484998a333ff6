package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/node/access"
)

// TokenVariable holds the text of a token for the broker at --addr. CLOUDSHARE_TOKEN is something else: the fence of a
// task's attempt.
//
// With _FILE after it, it names a file.
const TokenVariable = "CLOUDSHARE_API_TOKEN"

// ClientOf returns a client of the broker at addr, with its token if one is known. Of the token's text the pin stays
// here: by it the broker is trusted.
func (a *App) ClientOf(addr string) (*client.Client, error) {
	token, err := a.Token(addr)
	if err != nil {
		return nil, err
	}
	var pin *access.Pin
	if token != "" {
		bare, pinned, cause := access.Split(token)
		if cause == nil { // else it is no token of a broker's own
			token, pin = bare, pinned
		}
	}
	trusted, err := a.trustIn(addr, pin)
	if err != nil {
		return nil, err
	}
	at, err := trusted.secured(addr)
	if err != nil {
		return nil, err
	}
	options, err := trusted.options()
	if err != nil {
		return nil, err
	}
	c, err := client.New(at, options...)
	if err != nil {
		return nil, err
	}
	return c.WithToken(token), nil
}

// Token returns the token for the broker at addr, "" if none is known. Flag and environment name that of the broker at
// --addr: no other one is sent it. By a broker's own socket the operator needs none, and a token would make him its
// user: there the flag alone counts.
func (a *App) Token(addr string) (string, error) {
	if addr == a.Addr && a.TokenFile != "" {
		return readToken(a.TokenFile)
	}
	if strings.HasPrefix(addr, "unix://") {
		return "", nil
	}
	if addr == a.Addr {
		if text := strings.TrimSpace(a.getenv(TokenVariable)); text != "" {
			if err := access.Check(text); err != nil {
				return "", Usage("%s: %w", TokenVariable, err)
			}
			return text, nil
		}
		if path := a.getenv(TokenVariable + "_FILE"); path != "" {
			return readToken(path)
		}
	}
	return a.Contexts().Token(addr)
}

// readToken reads the token that somebody named.
func readToken(path string) (string, error) {
	text, err := access.ReadText(path)
	if err != nil {
		return "", Usage("%w", err)
	}
	return text, nil
}

// of returns the context of an address; its zero value if there is none. An address without a scheme has that of its
// context, http before https.
func (c Contexts) of(addr string) (Context, error) {
	at := place(addr)
	if c.path == "" || at == "" {
		return Context{}, nil
	}
	all, err := c.read()
	if err != nil {
		return Context{}, err
	}
	known, ok := all[at]
	if !ok && !strings.Contains(addr, "://") {
		known = all[place("https://"+addr)]
	}
	return known, nil
}

// Token returns the token of a context, "" if there is none, or none any more.
func (c Contexts) Token(addr string) (string, error) {
	known, err := c.of(addr)
	if err != nil || known.Token != "" || known.TokenFile == "" {
		return known.Token, err
	}
	text, err := access.ReadText(known.TokenFile)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil // of a federation that is gone
	}
	if err != nil {
		return "", fmt.Errorf("context of %s in %s: %w", place(addr), c.path, err)
	}
	return text, nil
}
