package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/auth"
	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// gate is what every request passes before it reaches an operation.
type gate struct {
	broker interface {
		Index() uint64
		Site() string
	}
	transport *transport.Server
	guard     *transport.Guard
	auth      *auth.Auth
	bodies    *transport.Bodies
	writers   *transport.Writers
	reads     *reads.Reads
	peers     *peers.Client
	metrics   *metrics
	audit     *auditing
	refuse    func(http.ResponseWriter, *http.Request, *problem.Problem)
	insist    bool // browsers are to come by HTTPS alone
}

var _ rest.Gate = (*gate)(nil)

// Begin implements rest.Gate: every answer says how far and how old the state is and
// who gives it, and is cut if nobody takes it.
func (g *gate) Begin(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, func(http.Header)) {
	if peers.FromSite(r.Context()) == "" {
		peers.Strip(r.Header)
	}
	r, age := g.reads.Stamp(r)
	// What a client has asked to be changed is answered even when it closed
	// its half of the connection, and is executed even when it has gone: it
	// cannot know which. Each of these requests has its own bound in time.
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		r = r.WithContext(node.AskedAt(context.WithoutCancel(r.Context()), g.peers.AskedAt(r)))
	}
	return g.writers.Guard(w), r, func(h http.Header) {
		if g.transport.Crowded() {
			h.Set("Connection", "close")
		}
		if g.insist && r.TLS != nil {
			h.Set("Strict-Transport-Security", insistFor)
		}
		if h.Get("WWW-Authenticate") != "" {
			return // to who brings no token nothing is told of the broker
		}
		if h.Get(headerIndex) == "" { // a forwarded answer has its own
			h.Set(headerIndex, strconv.FormatUint(g.broker.Index(), 10))
		}
		h.Set(headerSite, g.broker.Site())
		age(h)
	}
}

// headerIndex and headerSite are names as net/http keeps them: others are put into that form at each use.
var headerIndex, headerSite = http.CanonicalHeaderKey(wire.HeaderIndex), http.CanonicalHeaderKey(wire.HeaderSite)

// insistFor is for how long a browser comes by HTTPS alone: a month after its last visit.
const insistFor = "max-age=2592000"

// Admit implements rest.Gate: it refuses what other people's web pages ask, who has no
// token, and what is meant for another broker, and unpacks bodies. The request it returns says who asks, and ends with
// the token, and with the session.
func (g *gate) Admit(w http.ResponseWriter, r *http.Request) (*http.Request, func(), error) {
	who, err := g.admit(r)
	if err != nil {
		g.audit.noteRole(r, err)
		return r, func() {}, err
	}
	ctx, release, err := g.auth.Hold(r.Context(), who)
	if err != nil {
		return r, func() {}, err
	}
	ctx, leave, err := g.auth.HoldSession(ctx, r)
	if err != nil {
		release()
		return r, func() {}, err
	}
	note := new(rest.Note)
	if !auth.Reads(r) {
		ctx = rest.WithNote(ctx, note)
	}
	r = r.WithContext(node.WithAsker(ctx, who))
	return r, func() { leave(); release(); g.audit.noteLines(r, note) }, g.bodies.Decode(w, r)
}

// admit judges who asks: another site's broker was proven by the connection on which it asks, and so was the operator
// on the broker's own socket, where no browser comes; everybody else needs a token.
func (g *gate) admit(r *http.Request) (node.Asker, error) {
	if site := peers.FromSite(r.Context()); site != "" {
		return node.Asker{Site: site}, g.peers.Admit(r)
	}
	if transport.FromOperator(r.Context()) {
		return g.auth.AdmitOperator(r)
	}
	if err := g.guard.Admit(r); err != nil {
		return node.Asker{}, err
	}
	return g.auth.Admit(r)
}

// Answer implements rest.Gate.
func (g *gate) Answer(r *http.Request, status int, h http.Header) { g.audit.note(r, status, h) }

// Refuse implements rest.Gate: whoever asks for a page is refused by one.
func (g *gate) Refuse(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	if wantsPage(r) {
		r = r.WithContext(context.WithValue(r.Context(), pageKey{}, true))
	}
	g.refuse(w, r, p)
}

// Forward implements rest.Gate.
func (g *gate) Forward(w http.ResponseWriter, r *http.Request, at *node.ElsewhereError) {
	g.peers.Forward(w, r, at)
}

// Observe implements rest.Gate.
func (g *gate) Observe(route, method string, status int, took time.Duration) {
	g.metrics.observe(route, method, status, took)
}
