package contact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/cloudshare/cloudshare/api/wire"
)

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 8 << 10

// siteKey carries the Site that a question is for.
type siteKey struct{}

func newClient(dial func(ctx context.Context, site, addr string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Timeout:       askLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		// Each question dials: a connection that is kept says nothing of the address.
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, askLimit)
				defer cancel()
				s, _ := ctx.Value(siteKey{}).(Site)
				return dial(ctx, s.ID, s.Peer)
			},
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: maxAnswer,
		},
	}
}

// askSite returns what the site says of this one, nil if it does not know, or why it is
// not there.
func (c *Checker) askSite(ctx context.Context, s Site) (*wire.Contact, error) {
	u := url.URL{Scheme: "http", Host: s.ID, Path: "/v1/contact", RawQuery: url.Values{"from": {c.cfg.Site}}.Encode()}
	req, err := http.NewRequestWithContext(context.WithValue(ctx, siteKey{}, s), http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("the site's name is malformed")
	}
	req.Header.Set(wire.HeaderAt, s.Peer)
	res, err := c.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("it does not answer there (%w)", cause(err))
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	var who wire.Introduction
	if err == nil && res.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, &who)
	}
	switch {
	case err != nil || who.Site == "":
		return nil, fmt.Errorf("no broker's API answers there, but HTTP %d", res.StatusCode)
	case who.Federation != c.cfg.Federation:
		return nil, fmt.Errorf("site %.63q of another federation (%.40q) answers there", who.Site, who.Federation)
	case who.Site != s.ID:
		return nil, fmt.Errorf("site %.63q answers there", who.Site)
	}
	return bounded(who.You), nil
}

// cause returns an error without the URL around it.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// bounded keeps what another broker says in one short line.
func bounded(you *wire.Contact) *wire.Contact {
	if you == nil {
		return nil
	}
	line := func(s string) string {
		s = s[:min(len(s), 500)]
		return strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '?'
			}
			return r
		}, s)
	}
	return &wire.Contact{Reached: you.Reached, Address: line(you.Address), Why: line(you.Why)}
}
