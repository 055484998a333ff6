package peers

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
)

// fromKey carries the site whose broker asks.
type fromKey struct{}

// FromSite returns the site whose broker asks, as its connection has proven; "" = it is no broker that asks, but a
// client of this one.
func FromSite(ctx context.Context) string {
	site, _ := ctx.Value(fromKey{}).(string)
	return site
}

// From marks the requests of a connection that another site's broker has opened. One that does not say whose it is
// marks them as nobody's, who may ask nothing.
func From(ctx context.Context, conn net.Conn) context.Context {
	site := "?"
	if c, ok := conn.(interface{ PeerSite() string }); ok {
		site = c.PeerSite()
	}
	return context.WithValue(ctx, fromKey{}, site)
}

// asks are what brokers ask each other. They change nothing: a job is ended at its owner's broker alone.
var asks = map[string]bool{
	"GET /v1/jobs/{id}":       true,
	"GET /v1/jobs/{id}/tasks": true,
	"GET /v1/jobs/{id}/logs":  true,
	"GET /v1/jobs/{id}/kept":  true,
	"GET /v1/jobs/{id}/why":   true,
	"GET /v1/jobs/{id}/graph": true,
	"GET /v1/wait":            true,
	"GET /v1/contact":         true,
}

// mayAsk reports whether a request is one that brokers put to each other.
func mayAsk(r *http.Request) bool {
	parts := strings.Split(r.URL.Path, "/")
	if len(parts) > 3 && parts[2] == "jobs" && parts[3] != "" {
		parts[3] = "{id}"
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return r.URL.RawPath == "" && asks[method+" "+strings.Join(parts, "/")]
}

// errNoQuestion refuses what a broker has no reason to ask.
var errNoQuestion = problem.New(http.StatusForbidden, "not-for-brokers", "Another site's broker may not ask that",
	"brokers ask each other for jobs, their tasks and reasons, to wait for them, and for outputs of their own: anything else needs this broker's own API, and its token")

// Admit refuses what another broker may not ask, and what it meant for somebody else.
func (c *Client) Admit(r *http.Request) error {
	if !mayAsk(r) {
		return errNoQuestion
	}
	return c.checkMeant(r)
}

// Strip takes from a client's request what only brokers may say.
func Strip(h http.Header) {
	for _, name := range brokersOwn {
		h.Del(name)
	}
}

// brokersOwn are the headers that only brokers may send, as net/http keeps their names: others are put into that form,
// in memory of their own, for each request.
var brokersOwn = []string{
	http.CanonicalHeaderKey(wire.HeaderHops), http.CanonicalHeaderKey(wire.HeaderMeans),
	http.CanonicalHeaderKey(wire.HeaderVia), http.CanonicalHeaderKey(wire.HeaderSite),
	http.CanonicalHeaderKey(wire.HeaderHere), http.CanonicalHeaderKey(wire.HeaderAt),
}
