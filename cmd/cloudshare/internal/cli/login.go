package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/cloudshare/cloudshare/node/openid"
)

// Login is what is kept of a login at the identity provider of a broker's site. Both tokens are secrets.
type Login struct {
	Issuer  string    `json:"issuer"`
	Client  string    `json:"client_id"`
	Scopes  []string  `json:"scopes,omitempty"`
	IDToken string    `json:"id_token"` // what the broker is sent
	Refresh string    `json:"refresh_token,omitempty"`
	Expires time.Time `json:"expires"` // of IDToken
}

const (
	renewBefore  = time.Minute      // the end of a token: a command takes a while
	renewTimeout = 15 * time.Second // of the provider's answers
)

// errNoIDToken reports a provider that issues no token for the broker.
var errNoIDToken = errors.New("the identity provider gave no ID token: have it give one for this client (scope openid)")

// Provider returns how to ask the provider of a login.
func (l Login) Provider(ctx context.Context) (context.Context, *oauth2.Config, error) {
	if err := openid.CheckIssuer(l.Issuer); err != nil {
		return ctx, nil, fmt.Errorf("the broker names an identity provider that is not safe: %w", err)
	}
	ctx = oidc.ClientContext(ctx, &http.Client{Timeout: renewTimeout, CheckRedirect: openid.CheckRedirect})
	provider, err := oidc.NewProvider(ctx, l.Issuer)
	if err != nil {
		return ctx, nil, fmt.Errorf("ask the identity provider %s: %.200s", l.Issuer, strings.Join(strings.Fields(err.Error()), " "))
	}
	end := provider.Endpoint()
	if err = checkEndpoints(end); err != nil {
		return ctx, nil, err
	}
	end.AuthStyle = oauth2.AuthStyleInParams // a client without a secret
	return ctx, &oauth2.Config{ClientID: l.Client, Endpoint: end, Scopes: l.Scopes}, nil
}

// checkEndpoints refuses addresses at which a refresh token or a code could be read on the way.
func checkEndpoints(at oauth2.Endpoint) error {
	if err := openid.CheckEndpoint("token_endpoint", at.TokenURL); err != nil {
		return err
	}
	if at.DeviceAuthURL == "" {
		return nil // it has none: who logs in is told so
	}
	return openid.CheckEndpoint("device_authorization_endpoint", at.DeviceAuthURL)
}

// With returns the login with tokens that its provider gave.
func (l Login) With(t *oauth2.Token) (Login, error) {
	id, _ := t.Extra("id_token").(string)
	said, err := openid.ReadUnproven(id)
	if err != nil {
		return l, errNoIDToken
	}
	if err = l.check(said); err != nil {
		return l, err
	}
	l.IDToken, l.Expires = id, said.Expires
	if t.RefreshToken != "" {
		l.Refresh = t.RefreshToken
	}
	return l, nil
}

// KeepLogin has the tokens of a login go to an address.
func (c Contexts) KeepLogin(addr string, l Login) error {
	if c.path == "" {
		return Usage("logins are kept in $XDG_CONFIG_HOME or $HOME/.config: set HOME")
	}
	return c.change(func(f *contextsFile) error {
		f.put(addr, f.Contexts[f.at(addr)].with(&l))
		return nil
	})
}

// EndLogin forgets the login at an address, and reports whether there was one.
func (c Contexts) EndLogin(addr string) (was bool, err error) {
	err = c.change(func(f *contextsFile) error {
		known := f.Contexts[f.at(addr)]
		if was = known.Login != nil; was {
			f.put(addr, known.with(nil))
		}
		return nil
	})
	return was, err
}

// loginToken returns the token of a login, another one if it is about to end.
func (c Contexts) loginToken(at string, l Login) (string, error) {
	if time.Until(l.Expires) > renewBefore {
		return l.IDToken, nil
	}
	// Under the lock of the file: many providers take a refresh token once.
	err := c.change(func(f *contextsFile) error {
		if f.Contexts[at].Login == nil {
			return fmt.Errorf("the login at %s has ended: cloudshare login", at)
		}
		if l = *f.Contexts[at].Login; time.Until(l.Expires) > renewBefore {
			return nil // another process was first
		}
		next, err := l.renew()
		if err == nil {
			l = next
			f.put(at, f.Contexts[at].with(&l))
		}
		return err
	})
	if err != nil && time.Until(l.Expires) <= 0 {
		return "", WithExit(ExitRefused, err)
	}
	return l.IDToken, nil
}

// renew asks the provider for another token.
func (l Login) renew() (Login, error) {
	if l.Refresh == "" {
		return l, fmt.Errorf("the login at %s has ended: cloudshare login", l.Issuer)
	}
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	ctx, provider, err := l.Provider(ctx)
	if err != nil {
		return l, err
	}
	t, err := provider.TokenSource(ctx, &oauth2.Token{RefreshToken: l.Refresh}).Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		return l, fmt.Errorf("the login at %s has ended (%.80s): cloudshare login", l.Issuer, refused.ErrorCode)
	case err != nil:
		return l, fmt.Errorf("renew the login at %s: %w", l.Issuer, err)
	}
	return l.With(t)
}
