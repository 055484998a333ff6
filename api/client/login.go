package client

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
)

// Login is where the users of a broker's site log in: the OpenID provider whose tokens it takes.
type Login struct {
	Issuer string
	Client string // as which to log in
	Scopes []string
}

// ErrNoLogin reports that a broker takes its own tokens alone.
var ErrNoLogin = errors.New("this broker knows no identity provider")

// parameter is one of a WWW-Authenticate header, as brokers write it.
var parameter = regexp.MustCompile(`([a-z_]+)="([^"\\]*)"`)

// Login asks without a token where to log in: the broker's refusal says so.
func (c *Client) Login(ctx context.Context) (Login, error) {
	res, err := c.WithToken("").Get(ctx, "/v1/whoami", nil)
	if err != nil {
		return Login{}, err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode >= 400 && res.StatusCode != http.StatusUnauthorized:
		return Login{}, problemIn(res)
	case res.StatusCode != http.StatusUnauthorized:
		return Login{}, ErrNoLogin
	}
	scheme, rest, _ := strings.Cut(res.Header.Get("WWW-Authenticate"), " ")
	var out Login
	for _, p := range parameter.FindAllStringSubmatch(rest, -1) {
		switch p[1] {
		case "issuer":
			out.Issuer = p[2]
		case "client_id":
			out.Client = p[2]
		case "scope":
			out.Scopes = strings.Fields(p[2])
		}
	}
	if !strings.EqualFold(scheme, "Bearer") || out.Issuer == "" || out.Client == "" {
		return Login{}, ErrNoLogin
	}
	return out, nil
}
