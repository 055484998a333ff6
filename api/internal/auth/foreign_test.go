package auth

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node/access"
)

// refusing takes no token, for one reason.
type refusing struct{ err error }

func (f refusing) Find(string) (access.Token, error) { return access.Token{}, f.err }
func (f refusing) ByID(string) (access.Token, error) { return access.Token{}, f.err }
func (refusing) Valid(string) bool                   { return false }
func (refusing) OnRevoke(func(string))               {}

// What an identity provider says of a token has its own status; a 401 says where to log in, and forging is counted.
func TestTokensOfAProvider(t *testing.T) {
	for _, c := range []struct {
		kind      access.RefusalKind
		status    int
		challenge string
		last      int // after many
	}{{access.Unproven, 401, "Bearer x", 429}, {access.NoRole, 403, "", 403}, {access.Away, 503, "", 503}} {
		a := New(refusing{&access.Refusal{Kind: c.kind, Why: "so\nit is"}}, "x", Rates{WrongTokens: 10}, func(string) {})
		r := httptest.NewRequest("GET", "/v1/jobs", nil)
		r.Header.Set("Authorization", "Bearer eyJ.a.b")
		var first, last *problem.Problem
		for i := range 100 {
			_, err := a.Admit(r)
			if !errors.As(err, &last) {
				t.Fatal(err)
			}
			if i == 0 {
				first = last
			}
			if last.Status == c.last {
				break
			}
		}
		if first.Status != c.status || last.Status != c.last || !strings.HasPrefix(first.Detail, "so it is") ||
			first.GetHeaders().Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%d: %d %q %v, then %d", c.kind, first.Status, first.Detail, first.GetHeaders(), last.Status)
		}
	}
}

// Where to log in is told once, to whoever can: the provider's own reasons say it already.
func TestWhereToLogInIsToldOnce(t *testing.T) {
	for _, c := range []struct {
		err       error
		challenge string
		want      int
	}{
		{access.ErrExpired, "Bearer x", 1},
		{access.ErrUnknown, "Bearer x", 1},
		{access.ErrExpired, "", 0},
		{&access.Refusal{Why: "the token has expired: cloudshare login"}, "Bearer x", 1},
		{&access.Refusal{Why: "old"}, "Bearer x", 1},
	} {
		a := New(refusing{c.err}, c.challenge, Rates{WrongTokens: 10}, func(string) {})
		r := httptest.NewRequest("GET", "/v1/jobs", nil)
		r.Header.Set("Authorization", "Bearer eyJ.a.b")
		_, err := a.Admit(r)
		var p *problem.Problem
		if !errors.As(err, &p) || p.Status != 401 || strings.Count(p.Detail, "cloudshare login") != c.want {
			t.Errorf("%v with %q: %v", c.err, c.challenge, err)
		}
	}
}
