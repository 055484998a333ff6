// Package auth decides who may ask: a request brings a token, or a browser the cookie of a session that a token
// opened. What is asked it knows by method and path alone.
package auth

import (
	"errors"
	"net/http"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// Tokens says whose a token is, in the errors of package access.
type Tokens interface {
	// Find returns the token of a text.
	Find(text string) (access.Token, error)
	// ByID returns a token that was found before.
	ByID(id string) (access.Token, error)
	// Valid reports whether ByID would return it, which is no use of it.
	Valid(id string) bool
	// OnRevoke has f called with the ID of each token that is revoked, once it is not found any more.
	OnRevoke(f func(id string))
}

// Auth judges requests. All methods may be called from any goroutine.
type Auth struct {
	tokens   Tokens // nil: everybody may ask
	sessions *sessions
	bounds   *bounds
	live     *live // nil: everybody may ask

	challenge string
}

// New makes one for the tokens of a broker; nil lets everybody ask. The challenge tells whoever
// brings none where to log in; it may be empty. refused is told by which bound a request was refused.
func New(tokens Tokens, challenge string, most Rates, refused func(bound string)) *Auth {
	a := &Auth{tokens: tokens, sessions: newSessions(), bounds: newBounds(most, refused), challenge: challenge}
	if a.On() {
		a.live = newLive(tokens.ByID)
		a.sessions.ended = func(key sessionKey) { a.live.end(key.holder(), sessionEnded()) }
		tokens.OnRevoke(a.live.check)
	}
	return a
}

// On reports whether requests are judged at all.
func (a *Auth) On() bool { return a.tokens != nil }

// Admit refuses whoever may not ask this, and returns who asks.
func (a *Auth) Admit(r *http.Request) (node.Asker, error) {
	switch {
	case !a.On():
		return node.Asker{Operator: true}, nil
	case probes[r.URL.EscapedPath()]:
		return node.Asker{}, nil
	case Open(r.URL.EscapedPath()):
		return node.Asker{}, a.bounds.ofAnonymous(r, nil)
	}
	token, err := a.holder(r)
	if err != nil {
		return node.Asker{}, a.bounds.ofAnonymous(r, a.challenged(err))
	}
	who := node.Asker{User: token.User, Operator: token.Role.Covers(access.Operator), Token: token.ID}
	if err = a.bounds.ofUser(who); err != nil {
		return node.Asker{}, err
	}
	if need := Needed(r); !token.Role.Covers(need) {
		return node.Asker{}, &RoleError{who, token.Role, problem.New(http.StatusForbidden, "forbidden", "The token's role does not suffice",
			"this needs role "+string(need)+", the token has "+problem.OneLine(string(token.Role))+": ask the site's operator for another token")}
	}
	return who, nil
}

// RoleError refuses what the role of a valid token does not cover.
type RoleError struct {
	Who     node.Asker
	Role    access.Role
	Problem *problem.Problem
}

// Error implements error.
func (e *RoleError) Error() string { return e.Problem.Error() }

// Unwrap returns the problem that is answered.
func (e *RoleError) Unwrap() error { return e.Problem }

// AdmitOperator is Admit for a request that the site's operator was proven to have sent. One that brings a token is
// that token's all the same.
func (a *Auth) AdmitOperator(r *http.Request) (node.Asker, error) {
	if r.Header.Values("Authorization") == nil {
		return node.Asker{Operator: true}, nil
	}
	return a.Admit(r)
}

// holder returns the token with which a request comes.
func (a *Auth) holder(r *http.Request) (access.Token, error) {
	headers := r.Header.Values("Authorization")
	switch len(headers) {
	case 0:
		return a.session(r)
	case 1:
	default: // a proxy in front may have looked at another one
		return access.Token{}, unauthenticated("Authorization stands twice: send one token")
	}
	scheme, text, _ := strings.Cut(headers[0], " ")
	if token, basic := basicToken(r, scheme, text); basic {
		return a.find(r, token)
	}
	if !strings.EqualFold(scheme, "Bearer") {
		return access.Token{}, unauthenticated("Authorization must be: Bearer TOKEN")
	}
	return a.find(r, text)
}

// find returns the token of a text. Whoever is wrong too often is not answered any more for a while; a right token
// is always taken.
func (a *Auth) find(r *http.Request, text string) (access.Token, error) {
	token, err := a.tokens.Find(text)
	if err == nil {
		return token, nil
	}
	if p := refused(err); p != nil {
		return access.Token{}, p
	}
	if many := a.bounds.ofWrongToken(r); many != nil {
		return access.Token{}, many
	}
	return access.Token{}, unproven(err)
}

// reasons that whoever asks may know. They hold nothing of the token.
var reasons = []error{access.ErrNoToken, access.ErrMistyped, access.ErrUnknown, access.ErrExpired}

func reason(err error) string {
	var foreign *access.Refusal
	if errors.As(err, &foreign) {
		return problem.OneLine(foreign.Why)
	}
	for _, known := range reasons {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the token could not be looked up"
}

// whereTokensAre is the remedy of a request that brings no token, whoever asks.
const whereTokensAre = "the operator's token is in the file `token` of the broker's data_dir (under `cloudshare dev` in D/SITE/token); " +
	"send it as `Authorization: Bearer TOKEN`, with the CLI by --token-file; the broker's own user and root need none with --addr unix:///DATA_DIR/api.sock"

// whoMakesTokens is the remedy of one whose token does not hold: a user cannot read the operator's.
const whoMakesTokens = "ask the site's operator for a new one, which `cloudshare token create` makes (on the broker's machine " +
	"its user and root need no token for that: --addr unix:///DATA_DIR/api.sock)"

func unauthenticated(why string) *problem.Problem {
	return refuse("A token is needed", why, whereTokensAre)
}

// unproven returns the problem of a token that does not hold. What an identity provider's lacks says what to do.
func unproven(err error) *problem.Problem {
	var foreign *access.Refusal
	remedy := whoMakesTokens
	if errors.As(err, &foreign) {
		remedy = ""
	}
	return refuse("Another token is needed", reason(err), remedy)
}

func refuse(title, why, remedy string) *problem.Problem {
	if remedy != "" {
		why += "; " + remedy
	}
	return problem.New(http.StatusUnauthorized, Unauthenticated, title, why)
}

// Unauthenticated names the problem of a request without a valid token.
const Unauthenticated = "unauthenticated"
