package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
)

//go:embed templates/*.html
var templateFiles embed.FS

// templates returns one set per page: each defines "title" and "body". They are parsed when the first page is asked
// for: this program is also every command line and what supervises each task, which would pay for it at their start.
var templates = sync.OnceValue(func() map[string]*template.Template {
	sets := map[string]*template.Template{}
	for _, name := range []string{
		"federation", "fairness", "queue", "jobs", "job", "timeline", "events", "members", "invited", "docs",
		"problem", "login", "tokens", "token", "me", "users",
	} {
		sets[name] = template.Must(template.New("layout.html").Funcs(words).ParseFS(templateFiles,
			"templates/layout.html", "templates/parts.html", "templates/"+name+".html"))
	}
	return sets
})

// policy lets a page load nothing but its own files: no inline script or style,
// no other host, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard sets what every answer of this package carries.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// view is what one page shows.
type view struct {
	template string
	data     any
	status   int // 0 is 200
}

// screen is what the layout shows around it.
type screen struct {
	Tab     string // of the navigation
	Site    string
	Version string
	Self    string // path and query of this page
	Since   string // place of the newest change that it shows
	Query   string // in the search field
	Now     time.Time
	visitor
	outdated
	Tabs []tab
	Data any
}

type tab struct {
	Name, Path, Title string

	needs access.Role // the least one, "" = none
}

var tabs = []tab{
	{"federation", "/", "Federation", ""},
	{"fairness", "/fairness", "Fairness", ""},
	{"queue", "/queue", "Queue", ""},
	{"jobs", "/jobs", "Jobs", ""},
	{"timeline", "/timeline", "Timeline", ""},
	{"events", "/events", "Events", ""},
	{"members", "/members", "Members", ""},
	{"me", "/me", "You", access.ReadOnly},
	{"users", "/users", "Users", access.Operator},
	{"tokens", "/tokens", "Tokens", access.ReadOnly},
	{"docs", "/docs", "API", ""},
}

// patience bounds how long a page may wait for the broker.
const patience = 10 * time.Second

// page makes a handler of a page. Asked by a script for what changed, it sends
// the body alone.
func (p *Pages) page(h func(r *http.Request, param func(string) string) (view, error)) Handler {
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		since := p.since() // before the data: nothing that comes later is missed
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		v, err := h(r.WithContext(ctx), param)
		if isElsewhere(err) {
			return err
		}
		if err != nil {
			v = p.problem(err)
		}
		p.show(w, r, v, since)
		return nil
	}
}

// Refuse shows a problem as a page.
func (p *Pages) Refuse(w http.ResponseWriter, r *http.Request, problem Problem) {
	p.show(w, r, view{"problem", problem, problem.Status}, p.since())
}

// refuse shows an error as a page, unless another broker answers.
func (p *Pages) refuse(w http.ResponseWriter, r *http.Request, err error) error {
	var bad *formError
	switch {
	case isElsewhere(err):
		return err
	case errors.As(err, &bad):
		p.Refuse(w, r, Problem{http.StatusUnprocessableEntity, "The form is not filled in right", bad.Error()})
	default:
		p.Refuse(w, r, p.cfg.Problem(err))
	}
	return nil
}

func (p *Pages) problem(err error) view {
	what := p.cfg.Problem(err)
	return view{"problem", what, what.Status}
}

func (p *Pages) since() string {
	entry, home := p.cfg.Source.Moved()
	return place(entry, home)
}

// show renders first and then writes, so that a page is whole or an error.
func (p *Pages) show(w http.ResponseWriter, r *http.Request, v view, since string) {
	part := "layout.html"
	if r.Header.Get("HX-Request") == "true" && v.status == 0 {
		part = "fresh"
	}
	query := r.URL.Query().Get("q")
	if len(query) > maxSearch {
		query = ""
	}
	who := p.visitor(r)
	var out bytes.Buffer
	err := templates()[v.template].ExecuteTemplate(&out, part, screen{
		visitor: who, Tab: tabOf(v.template), Tabs: who.tabs(), Site: p.cfg.Source.Site(), Version: p.cfg.Version,
		Self: self(r.URL), Since: since,
		Query: query, Now: p.cfg.Now(), outdated: p.outdated(), Data: v.data,
	})
	if err != nil {
		v.status = http.StatusInternalServerError
		out.Reset()
		out.WriteString("this page cannot be drawn: " + template.HTMLEscapeString(err.Error()))
	}
	h := w.Header()
	guard(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "HX-Request")
	h.Set("Content-Length", strconv.Itoa(out.Len()))
	w.WriteHeader(max(v.status, http.StatusOK))
	_, _ = w.Write(out.Bytes()) // the client may be gone
}

// tabOf returns the tab of the navigation that a page belongs to.
func tabOf(template string) string {
	switch template {
	case "job":
		return "jobs"
	case "invited":
		return "members"
	case "token":
		return "tokens"
	}
	return template
}

// self returns where a page asks for itself again.
func self(u *url.URL) string {
	if u.RawQuery == "" {
		return u.EscapedPath()
	}
	return u.EscapedPath() + "?" + u.Query().Encode()
}
