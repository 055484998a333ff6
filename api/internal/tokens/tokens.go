// Package tokens says who asks, and has the site's operator make, list and revoke the tokens by which users and
// programs ask (package access). They hold at this site alone, so no other broker is asked, and the answers need no
// contact with the federation. That only operators come here, the rules of package auth see to.
package tokens

import (
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Store keeps the tokens of one site; its errors are those of package access.
type Store interface {
	// Create makes a token with the name, user, role and end of t, and returns its text, which is not kept.
	Create(t access.Token) (text string, made access.Token, err error)
	// List returns all tokens, also expired ones, the oldest first.
	List() []access.Token
	// ByID returns a token that holds.
	ByID(id string) (access.Token, error)
	// Revoke forgets a token.
	Revoke(id string) error
}

// Config of Tokens; all fields are required but Store.
type Config struct {
	Site   func() string
	Store  Store // nil: there are none, and everybody is the operator
	API    *rest.API
	Bodies rest.Bodies
}

// Tokens answers for one site.
type Tokens struct{ cfg Config }

// New makes Tokens; Register adds their operations to the API.
func New(c Config) *Tokens { return &Tokens{c} }

// Register adds the operations.
func (t *Tokens) Register() {
	t.read("whoami", "/v1/whoami", "Who asks, as the broker sees it", wire.Whoami{}, t.whoami)
	t.registerTokens()
}

// read registers a read that needs no state of the federation.
func (t *Tokens) read(id, path, summary string, out any, h rest.Handler) {
	t.cfg.API.Handle(huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary,
		Responses: t.cfg.API.Responses(http.StatusOK, wire.TypeJSON, t.cfg.API.Schema(out), 400, 403, 404),
	}, h)
}

func (t *Tokens) whoami(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	who := node.AskerOf(r.Context())
	out := wire.Whoami{Site: t.cfg.Site(), User: who.User, Role: string(access.Operator)}
	if who.Token != "" {
		token, err := t.cfg.Store.ByID(who.Token)
		if err != nil {
			return err // revoked just now
		}
		shown := form(token)
		out.Role, out.Token = shown.Role, &shown
	}
	return answer(w, http.StatusOK, out)
}

// answer keeps what is said of tokens out of caches.
func answer(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Cache-Control", "no-store")
	return rest.WriteJSON(w, status, v)
}

func form(t access.Token) wire.Token {
	out := wire.Token{ID: t.ID, Name: t.Name, User: t.User, Role: string(t.Role), Created: &t.Created}
	if !t.Expires.IsZero() {
		out.Expires = &t.Expires
	}
	if !t.Used.IsZero() {
		out.Used = &t.Used
	}
	return out
}

// lifetime reads how long a token is to hold; zero is without end.
func lifetime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	within, err := jobspec.ParseDuration(text)
	if err != nil || within < time.Second {
		return time.Time{}, problem.BadField("for", text, "must be a duration from 1s, e.g. 90d or 12h; leave it out for a token without end")
	}
	return time.Now().Add(within), nil
}

// stored returns the store, or why there is none.
func (t *Tokens) stored() (Store, error) {
	if t.cfg.Store == nil {
		return nil, fmt.Errorf("%w: this broker asks nobody for a token", node.ErrNotFound)
	}
	return t.cfg.Store, nil
}
