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

// providerTimeout is for how long an answer of the provider is waited for.
const providerTimeout = 15 * time.Second

// errNoIDToken reports a provider that issues no token for the broker.
var errNoIDToken = errors.New("the identity provider gave no ID token: have it give one for this client (scope openid)")

// Provider returns how to ask the provider of a login.
func (l Login) Provider(ctx context.Context) (context.Context, *oauth2.Config, error) {
	ctx, provider, err := l.discover(ctx)
	if err != nil {
		return ctx, nil, err
	}
	end := provider.Endpoint()
	if err = checkEndpoints(end); err != nil {
		return ctx, nil, err
	}
	end.AuthStyle = oauth2.AuthStyleInParams // a client without a secret
	return ctx, &oauth2.Config{ClientID: l.Client, Endpoint: end, Scopes: l.Scopes}, nil
}

// discover asks the provider what it is like. The context has by what it is asked on.
func (l Login) discover(ctx context.Context) (context.Context, *oidc.Provider, error) {
	if err := openid.CheckIssuer(l.Issuer); err != nil {
		return ctx, nil, fmt.Errorf("the broker names an identity provider that is not safe: %w", err)
	}
	ctx = oidc.ClientContext(ctx, providerClient())
	provider, err := oidc.NewProvider(ctx, l.Issuer)
	if err != nil {
		return ctx, nil, fmt.Errorf("ask the identity provider %s: %.200s", l.Issuer, strings.Join(strings.Fields(err.Error()), " "))
	}
	return ctx, provider, nil
}

// providerClient asks a provider: it stays with HTTPS.
func providerClient() *http.Client {
	return &http.Client{Timeout: providerTimeout, CheckRedirect: openid.CheckRedirect}
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
