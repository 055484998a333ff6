package web

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
)

// Tokens keeps the tokens of the site; its errors are for Config.Problem.
type Tokens interface {
	// Create makes a token with the name, user, role and end of t, and returns its text, which is not kept.
	Create(t access.Token) (text string, made access.Token, err error)
	// List returns all tokens, also expired ones, the oldest first.
	List() []access.Token
	// Revoke forgets a token.
	Revoke(id string) error
}

// tokensView is the tokens that the visitor may see: an operator all, a user the own ones.
type tokensView struct {
	Rows  []tokenRow
	More  int    // older ones that are not shown
	User  string // whose are selected, "" = all
	Users []string
	Lives []life
}

type tokenRow struct {
	access.Token
	Expired   bool
	Here      bool // it opened this session
	Revocable bool
}

// life is how long a new token is to hold.
type life struct {
	Name string
	For  time.Duration // 0 = without end
}

var lives = []life{
	{"90 days", 90 * 24 * time.Hour},
	{"1 day", 24 * time.Hour},
	{"30 days", 30 * 24 * time.Hour},
	{"a year", 365 * 24 * time.Hour},
	{"until it is revoked", 0},
}

// shownTokens bounds the list of the page.
const shownTokens = 200

func (p *Pages) tokens(r *http.Request, _ func(string) string) (view, error) {
	who, v := p.visitor(r), tokensView{Lives: lives, User: r.URL.Query().Get("user")}
	here := p.holderID(r)
	for _, t := range slices.Backward(p.cfg.Tokens.List()) {
		if !who.sees(&t) {
			continue
		}
		if t.User != "" && !slices.Contains(v.Users, t.User) {
			v.Users = append(v.Users, t.User)
		}
		switch {
		case v.User != "" && t.User != v.User:
		case len(v.Rows) == shownTokens:
			v.More++
		default:
			v.Rows = append(v.Rows, tokenRow{t, t.Expired(p.cfg.Now()), t.ID == here, who.revokes(&t)})
		}
	}
	slices.Sort(v.Users)
	return view{template: "tokens", data: &v}, nil
}

// holderID returns the ID of the token by which a request came, "" = none.
func (p *Pages) holderID(r *http.Request) string {
	token, err := p.cfg.Sessions.Holder(r)
	if err != nil {
		return ""
	}
	return token.ID
}

// sees reports whether a token is on the visitor's page.
func (v visitor) sees(t *access.Token) bool {
	return v.Operates() || v.User != "" && v.User == t.User
}

// revokes reports whether the visitor may revoke a token: one may not end what may do more.
func (v visitor) revokes(t *access.Token) bool {
	return v.Changes() && v.sees(t) && v.Role.Covers(t.Role)
}

// newToken is what is shown once.
type newToken struct {
	access.Token
	Text string
}

// createToken makes the token of the form. Its answer is the page that shows the text: it is kept nowhere to go on to.
func (p *Pages) createToken(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	t := access.Token{
		Name: r.PostFormValue("name"), User: r.PostFormValue("user"), Role: access.Role(r.PostFormValue("role")),
	}
	at := slices.IndexFunc(lives, func(l life) bool { return l.For.String() == r.PostFormValue("for") })
	if at < 0 {
		return p.refuse(w, r, &formError{"for", "must be one of the lives that the form offers"})
	}
	if l := lives[at]; l.For > 0 {
		t.Expires = p.cfg.Now().Add(l.For)
	}
	text, made, err := p.cfg.Tokens.Create(t)
	if err != nil {
		return p.refuse(w, r, err)
	}
	p.show(w, r, view{"token", &newToken{made, text}, http.StatusCreated}, p.since())
	return nil
}

// revokeToken revokes the token of the path.
func (p *Pages) revokeToken(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	who, id := p.visitor(r), param("id")
	at := slices.IndexFunc(p.cfg.Tokens.List(), func(t access.Token) bool { return t.ID == id && who.revokes(&t) })
	err := access.ErrUnknown // what is not the visitor's is not there
	if at >= 0 {
		err = p.cfg.Tokens.Revoke(id)
	}
	if err != nil {
		return p.refuse(w, r, fmt.Errorf("token %.80q: %w", id, err))
	}
	guard(w.Header())
	http.Redirect(w, r, "/tokens", http.StatusSeeOther)
	return nil
}
