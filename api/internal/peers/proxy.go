package peers

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// MaxHops lets a request go to a job's owner and on to a task's executor, and
// ends it when two brokers each believe that the other one knows.
const MaxHops = 2

// elsewhereKey carries the *node.ElsewhereError of a request to the proxy.
type elsewhereKey struct{}

// newProxy passes requests on to the broker named in their context.
func (c *Client) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     c.transport,
		FlushInterval: -1, // at once: it may be a followed log
		ErrorLog:      transport.NewErrorLog(c.cfg.Log),
		Rewrite: func(r *httputil.ProxyRequest) {
			e, _ := r.In.Context().Value(elsewhereKey{}).(*node.ElsewhereError)
			r.SetURL(&url.URL{Scheme: "http", Host: e.HTTP})
			r.Out.Header.Set(wire.HeaderHops, strconv.Itoa(hops(r.In)+1))
			r.Out.Header.Set(wire.HeaderMeans, c.means(e.Site))
			r.Out.Header.Set(wire.HeaderVia, c.AskedAt(r.In))
			r.Out.Header.Del("Origin") // judged here, by this broker's name
			r.Out.Header.Del("Sec-Fetch-Site")
		},
		ModifyResponse: func(res *http.Response) error {
			e, _ := res.Request.Context().Value(elsewhereKey{}).(*node.ElsewhereError)
			return answersAs(res, e.Site)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			e, _ := r.Context().Value(elsewhereKey{}).(*node.ElsewhereError)
			if r.Context().Err() == nil { // else it is the client that left
				c.cfg.Log.Info().Err(err).Str("site", e.Site).Str("addr", e.HTTP).Msg("broker unreachable")
			}
			c.cfg.Refuse(w, r, problem.Unreachable(e, notReached(e, err)))
		},
	}
}

// Forward has another broker answer. The client never sees a redirect.
func (c *Client) Forward(w http.ResponseWriter, r *http.Request, e *node.ElsewhereError) {
	w.Header().Del(wire.HeaderIndex) // the answer brings the other broker's
	w.Header().Del(wire.HeaderHome)
	if p := unasked(r, e); p != nil {
		c.cfg.Refuse(w, r, p)
		return
	}
	if c.cfg.Blocks(r) { // it waits there, and holds a connection here
		leave, err := c.cfg.Waiters.Enter()
		if err != nil {
			c.cfg.Refuse(w, r, problem.Of(err))
			return
		}
		defer leave()
	}
	ctx, cancel := c.cfg.Stop.Until(r.Context())
	defer cancel()
	c.proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, elsewhereKey{}, e)))
}

// AskedAt returns the site whose broker a client asked: what another broker that passed the
// request on says, else this one.
func (c *Client) AskedAt(r *http.Request) string {
	if via := r.Header.Get(wire.HeaderVia); hops(r) > 0 && fsm.ValidSite(via) {
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
