package auth

import (
	"errors"
	"net/http"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node/access"
)

// refused returns the problem of a token that the site's identity provider vouches for, or that it cannot be asked
// about; nil for one that nobody vouches for, which counts as an attempt.
func refused(err error) *problem.Problem {
	var foreign *access.Refusal
	if !errors.As(err, &foreign) {
		return nil
	}
	why := problem.OneLine(foreign.Why)
	switch foreign.Kind {
	case access.NoRole:
		return problem.New(http.StatusForbidden, "forbidden", "The user has no role at this site", why)
	case access.Away:
		p := problem.New(http.StatusServiceUnavailable, "provider-away", "The identity provider does not answer", why)
		p.RetryAfter = 10
		return p
	case access.Unproven:
	}
	return nil
}

// login is what logs in at the site's identity provider.
const login = "cloudshare login"

// challenged adds to a 401 where to log in. Whoever has no token is told so with no open path more.
func (a *Auth) challenged(err error) error {
	var p *problem.Problem
	if !errors.As(err, &p) || p.Status != http.StatusUnauthorized {
		return err
	}
	own := *p
	if own.Challenge = a.challenge; a.challenge != "" && !strings.Contains(own.Detail, login) {
		own.Detail += "; or log in at the site's identity provider: " + login
	}
	return &own
}
