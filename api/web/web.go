// Package web serves pages for people: step 1 of a job's way, seen in a
// browser. It draws what package api's clients can read, on the server, as HTML
// and SVG; it never imports package api, a coordination backend or a handler.
package web

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Config says what the pages stand on.
type Config struct {
	Source  Source
	Roster  Roster
	History History // nil: nothing is kept, and the pages say so
	Whys    Whys    // nil: a waiting job's reason is all there is to say
	Usages  Usages  // nil: nothing is archived, and no job's page sums up what was used
	// Sessions lets people in; nil: there is no login page, and everybody is in.
	Sessions Sessions
	Tokens   Tokens // nil: there are none to show, and no users
	People   People // needed with Tokens
	Version  string // of the program
	// Problem words an error that is no *node.ElsewhereError for people. Its
	// texts may hold what came from outside.
	Problem func(error) Problem
	// Stopping is closed when streams are to end; nil never is.
	Stopping <-chan struct{}
	// MaxStreams bounds the pages that get changes at the same time.
	MaxStreams int
	// Pace is the least time between two changes sent to one page.
	Pace time.Duration
	// Now is the clock for people; nil is time.Now.
	Now func() time.Time
}

// Problem is an error for people.
type Problem struct {
	Status        int
	Title, Detail string
}

// Handler answers one route. The writer cuts clients that take nothing. An error is a *node.ElsewhereError: another
// broker is to answer, and how to reach it is not known; whatever else went wrong has been shown.
type Handler func(w http.ResponseWriter, r *http.Request, param func(string) string) error

// Route is one path; {name} stands for a part that param gives.
type Route struct {
	Method, Path string
	Handler      Handler
	Stay         Stay
	// Form says that the handler reads a form: one of MaxForm bytes at most, which has come whole.
	Form bool
}

// MaxForm bounds the forms of the pages, in bytes.
const MaxForm = 16 << 10

// Stay says whether a route's answers go on by themselves.
type Stay int

// Kinds of stay.
const (
	Brief   Stay = iota
	Listens      // until the page is closed
	Follows      // one task's output, until its end
)

// Pages answers for one broker. It is safe for concurrent use.
type Pages struct {
	cfg     Config
	streams atomic.Int64 // open ones; invariant: at most cfg.MaxStreams
	origins http.CrossOriginProtection
	said    saidCache
}

// Defaults of a Config.
const (
	defaultMaxStreams = 1200
	defaultPace       = time.Second
)

// New builds the pages. Source, Roster and Problem are needed, the rest may be zero.
func New(cfg Config) *Pages {
	if cfg.MaxStreams == 0 {
		cfg.MaxStreams = defaultMaxStreams
	}
	if cfg.Pace == 0 {
		cfg.Pace = defaultPace
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Pages{cfg: cfg}
}

// Routes lists what the pages answer, but for the form of the login page: see LogIn.
func (p *Pages) Routes() []Route {
	page := func(path string, h func(r *http.Request, param func(string) string) (view, error)) Route {
		return Route{http.MethodGet, path, p.page(h), Brief, false}
	}
	form := func(path string, h Handler) Route {
		return Route{http.MethodPost, path, p.posted(h), Brief, true}
	}
	routes := []Route{
		page("/", p.federation),
		page("/fairness", p.fairness),
		page("/queue", p.queue),
		page("/jobs", p.jobs),
		page("/jobs/{id}", p.job),
		page("/timeline", p.timeline),
		page("/events", p.events),
		page("/members", p.members),
		form("/members/invite", p.invite),
		form("/members/propose", p.change(p.propose)),
		form("/members/invitations/{site}/revoke", p.change(p.revoke)),
		form("/members/motions/{number}/approve", p.voting(true)),
		form("/members/motions/{number}/reject", p.voting(false)),
		form("/jobs/{id}/cancel", p.cancel),
		{http.MethodGet, "/jobs/{id}/log", p.log, Follows, false},
		{http.MethodGet, "/jobs/{id}/live", p.jobLive, Listens, false},
		{http.MethodGet, "/events/stream", p.eventStream, Listens, false},
		{http.MethodGet, "/live", p.live, Listens, false},
		{http.MethodGet, "/contact", p.contact, Listens, false},
		{http.MethodGet, "/assets/{name}", p.asset, Brief, false},
	}
	if p.cfg.Sessions != nil {
		routes = append(routes, page("/login", p.login), form("/logout", p.logOut))
	}
	if p.cfg.Tokens != nil {
		routes = append(routes, page("/me", p.me), page("/users", p.people), page("/tokens", p.tokens), form("/tokens", p.createToken),
			form("/tokens/{id}/revoke", p.revokeToken))
	}
	return routes
}
