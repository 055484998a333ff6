package peers

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// MaxHops lets a request go to a job's owner and on to a task's executor, and
// ends it when two brokers each believe that the other one knows.
const MaxHops = 2

// newProxy passes requests on to the broker named in their context.
func (c *Client) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     c.transport,
		FlushInterval: -1, // at once: it may be a followed log
		ErrorLog:      transport.NewErrorLog(c.cfg.Log),
		Rewrite: func(r *httputil.ProxyRequest) {
			e := meant(r.In.Context())
			r.SetURL(&url.URL{Scheme: "http", Host: hostOf(e)})
			r.Out.Host = e.Site
			keepOnly(r.Out.Header, forwarded)
			r.Out.Header.Set(wire.HeaderHops, strconv.Itoa(hops(r.In)+1))
			r.Out.Header.Set(wire.HeaderMeans, c.means(e.Site))
			r.Out.Header.Set(wire.HeaderVia, c.AskedAt(r.In))
		},
		ModifyResponse: func(res *http.Response) error {
			return answersAs(res, meant(res.Request.Context()).Site)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			e := meant(r.Context())
			if r.Context().Err() == nil { // else it is the client that left
				c.cfg.Log.Info().Err(err).Str("site", e.Site).Str("addr", e.Peer).Msg("broker unreachable")
			}
			c.cfg.Refuse(w, r, problem.Unreachable(e, notReached(e, err)))
		},
	}
}

// Forward has another broker answer. The client never sees a redirect.
func (c *Client) Forward(w http.ResponseWriter, r *http.Request, e *node.ElsewhereError) {
	w.Header().Del(wire.HeaderIndex) // the answer brings the other broker's
	w.Header().Del(wire.HeaderHome)
	if !mayAsk(r) { // pages, for one, are drawn by this broker
		c.cfg.Refuse(w, r, problem.Unreachable(e, "brokers do not ask each other that"))
		return
	}
	if p := unasked(r, e); p != nil {
		c.cfg.Refuse(w, r, p)
		return
	}
	if c.cfg.Blocks(r) { // it waits there, and holds a connection here
		leave, err := c.cfg.Waiters.Enter(r.Context())
		if err != nil {
			c.cfg.Refuse(w, r, problem.Of(err))
			return
		}
		defer leave()
	}
	ctx, cancel := c.cfg.Stop.Until(r.Context())
	defer cancel()
	c.proxy.ServeHTTP(w, r.WithContext(meaning(ctx, e)))
}

// AskedAt returns the site whose broker a client asked: what another broker that passed the
// request on says, unless it is the first one, else this one.
func (c *Client) AskedAt(r *http.Request) string {
	if from := FromSite(r.Context()); from != "" && hops(r) == 1 && command.ValidSite(from) {
		return from
	}
	if via := r.Header.Get(wire.HeaderVia); hops(r) > 0 && command.ValidSite(via) {
		return via
	}
	return c.cfg.Site()
}

// hops counts how often a request was passed on. What cannot be read counts as
// too often.
func hops(r *http.Request) int {
	text := r.Header.Get(wire.HeaderHops)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > MaxHops {
		return MaxHops
	}
	return n
}
