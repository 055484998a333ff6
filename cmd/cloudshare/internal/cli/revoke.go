package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/openid"
)

// EndLogin forgets the login at an address, and returns what it was; nil if there was none.
func (c Contexts) EndLogin(addr string) (was *Login, err error) {
	err = c.change(func(f *contextsFile) error {
		known := f.Contexts[f.at(addr)]
		if was = known.Login; was != nil {
			f.put(addr, known.with(nil))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return was, nil
}

// Why a provider does not end a login.
var (
	errNoRevocation = errors.New("it names no revocation endpoint")
	errNoRefresh    = errors.New("it gave nothing that could be renewed")
)

// Renewable reports whether whoever has the login gets further tokens by it.
func (l Login) Renewable() bool { return l.Refresh != "" }

// Holds returns until when the broker takes the token that was sent last: it cannot be revoked.
func (l Login) Holds() time.Time { return l.Expires.Add(openid.Leeway) }

// Revoke has the provider end the login, so that it gives no more tokens for it (RFC 7009).
func (l Login) Revoke(ctx context.Context) error {
	if !l.Renewable() {
		return errNoRefresh
	}
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	ctx, provider, err := l.discover(ctx)
	if err != nil {
		return err
	}
	var said struct {
		Endpoint string `json:"revocation_endpoint"`
	}
	if err = provider.Claims(&said); err != nil {
		return fmt.Errorf("read how the identity provider %s describes itself: %w", l.Issuer, err)
	}
	if said.Endpoint == "" {
		return errNoRevocation
	}
	if err = openid.CheckEndpoint("revocation_endpoint", said.Endpoint); err != nil {
		return err
	}
	return l.revokeAt(ctx, said.Endpoint)
}

func (l Login) revokeAt(ctx context.Context, endpoint string) error {
	form := url.Values{"token": {l.Refresh}, "token_type_hint": {"refresh_token"}, "client_id": {l.Client}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("revoke the login: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := providerClient().Do(req)
	if err != nil {
		return fmt.Errorf("revoke the login: %w", err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("revoke the login: it answers %s", res.Status)
	}
	return nil
}
