package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/auth"
	"github.com/cloudshare/cloudshare/api/internal/outputs"
	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/results"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/archive"
)

// Recent is what a broker remembers of the last hours.
type Recent interface {
	Attempts(since time.Time, site string, limit int) []archive.Attempt
	EarlierOf(job command.JobID, from, to uint32, limit int) []archive.Attempt
	Samples(since time.Time) []archive.Sample
}

var _ Recent = (*archive.Recent)(nil)

// pages are for people. They are no operations of the API: they may change with
// every version.
type pages struct {
	api                *rest.API
	waiters, followers *transport.Places
	web                *web.Pages
	auth               *auth.Auth
	bodies             *transport.Bodies
}

// newSource says what the pages stand on.
func newSource(
	cfg *Config, b seen, o *outputs.Outputs, left *results.Results, others *peers.Client, who *auth.Auth,
	stop *transport.Stop,
) web.Config {
	out := web.Config{
		Source: pageSource{b, o, others, left}, Roster: b, Whys: pageWhys{b}, Version: cfg.Version,
		Problem: pageProblem, Stopping: stop.Begun(), Sessions: who,
		MaxStreams: cfg.MaxWaiters + cfg.MaxFollowers, // stayed refuses before
	}
	if cfg.Access != nil {
		out.Tokens = cfg.Access
	}
	if cfg.Recent != nil {
		out.History = pageHistory{cfg.Recent, b.Knows}
	}
	return out
}

// pageKey marks the requests whose errors are shown as pages.
type pageKey struct{}

// register adds the pages.
func (g *pages) register() {
	for _, route := range g.web.Routes() {
		answer := g.formed(route.Form, g.stayed(route))
		g.api.Page(route.Method, route.Path, route.Stay != web.Brief,
			func(w http.ResponseWriter, r *http.Request, param func(string) string) {
				r = r.WithContext(context.WithValue(r.Context(), pageKey{}, true))
				if err := answer(w, r, param); err != nil {
					g.api.Fail(w, r, err)
				}
			})
	}
	g.api.Page(http.MethodPost, auth.PathLogin, false, g.logIn)
}

// logIn reads the form of the login page.
func (g *pages) logIn(w http.ResponseWriter, r *http.Request, _ func(string) string) {
	r = r.WithContext(context.WithValue(r.Context(), pageKey{}, true))
	if body, ok := g.form(w, r); ok {
		g.web.LogIn(w, r, body)
	}
}

// form reads a form whole, or says why not.
func (g *pages) form(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	if r.ContentLength < 0 || r.ContentLength > web.MaxForm {
		w.Header().Set("Connection", "close") // of the body nothing is read
		g.refuse(w, r, problem.OfStatus(http.StatusRequestEntityTooLarge, "it may have 16 KiB, and must say how many it has"))
		return nil, false
	}
	body, err := g.bodies.Read(w, r)
	if err != nil {
		g.refuse(w, r, problem.Of(err))
		return nil, false
	}
	return body, true
}

// formed has a handler that reads a form get one that has come whole.
func (g *pages) formed(form bool, h web.Handler) web.Handler {
	if !form {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		body, ok := g.form(w, r)
		if !ok {
			return nil
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return h(w, r, param)
	}
}

// stayed is followed for the pages' streams.
func (g *pages) stayed(route web.Route) web.Handler {
	taken := map[web.Stay]*transport.Places{web.Listens: g.waiters, web.Follows: g.followers}[route.Stay]
	if taken == nil {
		return route.Handler
	}
	return func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		leave, err := taken.Enter(r.Context())
		if err != nil {
			g.refuse(w, r, problem.Of(err))
			return nil
		}
		defer leave()
		return g.api.Elsewhere(w, r, route.Handler(w, r, param))
	}
}

// wantsPage reports whether a browser asks for a page to show: unlike programs, it
// names text/html. What begins with /v1/ is the API's, whoever asks.
func wantsPage(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return reads && !strings.HasPrefix(r.URL.Path, "/v1/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// refuse answers with a problem in the form that the client asked in.
func (g *pages) refuse(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	if r.Context().Value(pageKey{}) == nil {
		if p.Status == http.StatusUnauthorized && r.Header.Get("HX-Request") == "true" {
			web.AskToLogIn(w, r)
		}
		p.Write(w)
		return
	}
	p.SetHeaders(w.Header())
	if p.Status == http.StatusUnauthorized && web.AskToLogIn(w, r) {
		return
	}
	g.web.Refuse(w, r, web.Problem{Status: p.Status, Title: p.Title, Detail: p.Detail})
}

func pageProblem(err error) web.Problem {
	p := problem.Of(err)
	return web.Problem{Status: p.Status, Title: p.Title, Detail: p.Detail}
}

// pageWhys words why a job waits.
type pageWhys struct{ source.Whys }

// Why implements web.Whys.
func (p pageWhys) Why(ctx context.Context, id command.JobID) (web.Why, error) {
	why, err := p.Whys.Why(ctx, id)
	if err != nil {
		return web.Why{}, err
	}
	out := web.Why{}
	names := []string{id.Site}
	for _, s := range why.Sites {
		names = append(names, s.Site)
	}
	for _, line := range []string{why.Summary, why.Turn} {
		if line != "" {
			out.Lines = append(out.Lines, sentence(line, names))
		}
	}
	for _, s := range why.Sites {
		out.Sites = append(out.Sites, web.SiteWhy{Site: s.Site, Why: s.Text})
	}
	return out, nil
}

// sentence begins with a capital, unless with one of the names, and ends with a
// stop.
func sentence(s string, names []string) string {
	first, _, _ := strings.Cut(s, " ")
	named := slices.ContainsFunc(names, func(name string) bool {
		rest, ok := strings.CutPrefix(first, name)
		return ok && (rest == "" || strings.IndexByte(",:;.'", rest[0]) >= 0)
	})
	if !named && s[0] >= 'a' && s[0] <= 'z' {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return strings.TrimRight(s, ".") + "."
}

// pageHistory words the last hours.
type pageHistory struct {
	Recent
	knows func(ctx context.Context, id command.JobID) bool
}

// Attempts implements web.History.
func (p pageHistory) Attempts(ctx context.Context, since time.Time, site string, limit int) []web.Attempt {
	list := pageAttempts(p.Recent.Attempts(since, site, limit))
	for i := range list {
		if a := &list[i]; !p.knows(ctx, a.Job) {
			a.Job.Num, a.Task, a.Attempt = 0, 0, 0
		}
	}
	return list
}

// EarlierOf implements web.History.
func (p pageHistory) EarlierOf(job command.JobID, from, to uint32, limit int) []web.Attempt {
	return pageAttempts(p.Recent.EarlierOf(job, from, to, limit))
}

func pageAttempts(list []archive.Attempt) []web.Attempt {
	var out []web.Attempt
	for _, a := range list {
		started := a.Started
		if started.IsZero() {
			started = a.Assigned
		}
		if a.Site == "" || started.IsZero() {
			continue // it never came to run
		}
		out = append(out, web.Attempt{
			Job: a.Job, Task: a.Task, Attempt: a.Number, Site: a.Site, Started: started, Ended: a.Ended,
			Outcome: a.Outcome.String(),
		})
	}
	return out
}
