package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/node/openid"
)

// TokenVariable holds the text of a token for the broker at --addr. CLOUDSHARE_TOKEN is something else: the fence of a
// task's attempt.
//
// With _FILE after it, it names a file.
const TokenVariable = "CLOUDSHARE_API_TOKEN"

// ClientOf returns a client of the broker at addr, with its token if one is known. Of the token's text the pin stays
// here: by it the broker is trusted.
func (a *App) ClientOf(addr string) (*client.Client, error) {
	b, err := a.brokerAt(addr)
	if err != nil {
		return nil, err
	}
	token, login, err := a.tokenFor(b)
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
	c, err := a.clientBy(b, pin)
	if err == nil && token != "" {
		err = a.checkPlain(b)
	}
	if err != nil {
		return nil, err
	}
	if login != nil {
		return c.WithTokens(login.token), nil
	}
	return c.WithToken(token), nil
}

// NamelessClient returns a client of the broker at addr that shows no token.
func (a *App) NamelessClient(addr string) (*client.Client, error) {
	b, err := a.brokerAt(addr)
	if err != nil {
		return nil, err
	}
	return a.clientBy(b, nil)
}

func (a *App) clientBy(b broker, pin *access.Pin) (*client.Client, error) {
	trusted, err := a.trustAt(b, pin)
	if err != nil {
		return nil, err
	}
	if err = trusted.check(b); err != nil {
		return nil, err
	}
	options, err := trusted.options()
	if err != nil {
		return nil, err
	}
	return client.New(b.at, options...)
}

// Token returns the token for the broker at addr, "" if none is known. Flag and environment name that of the broker at
// --addr: no other one is sent it. By a broker's own socket the operator needs none, and a token would make him its
// user: there the flag alone counts.
func (a *App) Token(addr string) (string, error) {
	b, err := a.brokerAt(addr)
	if err != nil {
		return "", err
	}
	text, _, err := a.tokenFor(b)
	return text, err
}

// tokenFor returns the token for a broker, and the login whose tokens follow it, nil if it is none of a login.
func (a *App) tokenFor(b broker) (string, *renewal, error) {
	if b.here {
		if text, err := a.namedToken(); text != "" || err != nil {
			return text, nil, err
		}
	}
	if b.scheme() == "unix" {
		return "", nil, nil
	}
	known, at, err := a.Contexts().of(b.at)
	if err == nil && known.Login != nil {
		r := &renewal{contexts: a.Contexts(), at: at, login: *known.Login}
		text, cause := r.token("")
		return text, r, cause
	}
	text, err := a.Contexts().Token(b.at)
	return text, nil, err
}

// namedToken returns the token that flag or environment name for the broker at --addr.
func (a *App) namedToken() (string, error) {
	if a.TokenFile != "" {
		return readToken(a.TokenFile)
	}
	if strings.HasPrefix(strings.ToLower(a.Addr), "unix://") {
		return "", nil
	}
	if text := strings.TrimSpace(a.getenv(TokenVariable)); text != "" {
		if err := access.Check(text); err != nil && !openid.LooksLike(text) {
			return "", Usage("%s: %w", TokenVariable, err)
		}
		return text, nil
	}
	if path := a.getenv(TokenVariable + "_FILE"); path != "" {
		return readToken(path)
	}
	return "", nil
}

// readToken reads the token that somebody named: of a broker, or of its site's identity provider.
func readToken(path string) (string, error) {
	text, err := readText(path)
	if err != nil {
		return "", Usage("%w", err)
	}
	return text, nil
}

// readText is access.ReadText, also for the token of an identity provider.
func readText(path string) (string, error) {
	if data, err := os.ReadFile(path); err == nil && openid.LooksLike(strings.TrimSpace(string(data))) {
		return strings.TrimSpace(string(data)), nil
	}
	return access.ReadText(path)
}

// of returns the context of an address and how the file names it; its zero value if there is none.
func (c Contexts) of(addr string) (Context, string, error) {
	f, err := c.read()
	if err != nil {
		return Context{}, place(addr), err
	}
	at := f.at(addr)
	return f.Contexts[at], at, nil
}

// Token returns the token of a context, "" if there is none, or none any more.
func (c Contexts) Token(addr string) (string, error) {
	known, at, err := c.of(addr)
	if err != nil {
		return "", err
	}
	if known.Login != nil {
		l, cause := c.renewed(at, *known.Login, "")
		return l.IDToken, cause
	}
	if known.Token != "" || known.TokenFile == "" {
		return known.Token, nil
	}
	text, err := readText(known.TokenFile)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil // of a federation that is gone
	}
	if err != nil {
		return "", fmt.Errorf("context of %s in %s: %w", place(addr), c.path, err)
	}
	return text, nil
}
