package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/cloudshare/cloudshare/node/access"
)

// Sessions lets browsers in that have a token.
type Sessions interface {
	// On reports whether a token is needed at all.
	On() bool
	// LogIn opens a session for who has the token, and returns its cookie.
	LogIn(r *http.Request, token string) (*http.Cookie, error)
	// LogOut ends the session of a request, and returns the cookie that takes back its own.
	LogOut(r *http.Request) *http.Cookie
	// Holder returns the token by which a request was sent, or the operator's; the error says that there is no session.
	Holder(r *http.Request) (access.Token, error)
	// FormKey returns what the forms of a request's session carry, "" = it comes without one. Genuine reports whether
	// the key that a form brings is that.
	FormKey(r *http.Request) string
	Genuine(r *http.Request, key string) bool
}

// loginPage is what the page shows.
type loginPage struct {
	Next  string // path to go on to
	Wrong string // why the last token was refused
	Site  string
}

// Local returns where to go on after a login: a path of this broker, whatever was asked for.
func Local(next string) string {
	u, err := url.Parse(next)
	// A browser reads \ as /, and leaves out what is no printable character: two of them name another host.
	odd := strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r <= ' ' || r == 0x7f })
	if err != nil || odd || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || u.Path == "/login" {
		return "/"
	}
	return next
}

// login shows the page that asks for a token.
func (p *Pages) login(r *http.Request, _ func(string) string) (view, error) {
	return p.loginView(Local(r.URL.Query().Get("next")), "", http.StatusOK), nil
}

func (p *Pages) loginView(next, wrong string, status int) view {
	return view{"login", loginPage{next, wrong, p.cfg.Source.Site()}, status}
}

// LogIn answers the form of the login page, of which body is what the browser sent.
func (p *Pages) LogIn(w http.ResponseWriter, r *http.Request, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		form = url.Values{}
	}
	next := Local(form.Get("next"))
	cookie, err := p.cfg.Sessions.LogIn(r, form.Get("token"))
	if err != nil {
		why := p.cfg.Problem(err)
		if why.Status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		p.show(w, r, p.loginView(next, why.Detail, why.Status), p.since())
		return
	}
	p.goOn(w, cookie, next)
}

// logOut ends the session of a browser.
func (p *Pages) logOut(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	p.goOn(w, p.cfg.Sessions.LogOut(r), "/login")
	return nil
}

func (p *Pages) goOn(w http.ResponseWriter, cookie *http.Cookie, to string) {
	guard(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	http.SetCookie(w, cookie)
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// AskToLogIn sends a browser that has no session to the login page: one that shows a page by a redirect, a script of
// ours by the header that it goes by.
func AskToLogIn(w http.ResponseWriter, r *http.Request) (sent bool) {
	next, byScript := self(r.URL), r.Header.Get("HX-Request") == "true"
	if byScript {
		next = "/"
		if at, err := url.Parse(r.Header.Get("HX-Current-URL")); err == nil {
			next = Local(self(&url.URL{Path: at.Path, RawQuery: at.RawQuery}))
		}
	}
	to := "/login?" + url.Values{"next": {next}}.Encode()
	guard(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	if byScript {
		w.Header().Set("HX-Redirect", to)
		return false
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
	return true
}
