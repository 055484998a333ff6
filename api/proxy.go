package api

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// maxHops lets a request go to a job's owner and on to a task's executor, and
// ends it when two brokers each believe that the other one knows.
const maxHops = 2

// elsewhereKey carries the *node.ElsewhereError of a request to the proxy.
type elsewhereKey struct{}

func newPeerTransport(timeout time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		DisableCompression: true, // logs are passed on as they come
	}
}

// peerTransport waits longer for the answer to a blocking read.
type peerTransport struct{ plain, patient *http.Transport }

func newPeers(timeout time.Duration) *peerTransport {
	p := &peerTransport{plain: newPeerTransport(timeout), patient: newPeerTransport(timeout)}
	p.patient.ResponseHeaderTimeout = timeout + maxWait
	return p
}

// RoundTrip implements http.RoundTripper.
func (p *peerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == waitPath || r.URL.Query().Has("index") {
		return p.patient.RoundTrip(r)
	}
	return p.plain.RoundTrip(r)
}

// CloseIdleConnections ends what is kept open.
func (p *peerTransport) CloseIdleConnections() {
	p.plain.CloseIdleConnections()
	p.patient.CloseIdleConnections()
}

// newProxy passes requests on to the broker named in their context.
func (s *Server) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     s.peers,
		FlushInterval: -1, // at once: it may be a followed log
		ErrorLog:      transport.NewErrorLog(s.log),
		Rewrite: func(r *httputil.ProxyRequest) {
			e, _ := r.In.Context().Value(elsewhereKey{}).(*node.ElsewhereError)
			r.SetURL(&url.URL{Scheme: "http", Host: e.HTTP})
			r.Out.Header.Set(wire.HeaderHops, strconv.Itoa(hops(r.In)+1))
			r.Out.Header.Set(wire.HeaderMeans, s.means(e.Site))
			r.Out.Header.Set(wire.HeaderVia, s.askedAt(r.In))
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
				s.log.Info().Err(err).Str("site", e.Site).Str("addr", e.HTTP).Msg("broker unreachable")
			}
			s.refuse(w, r, problem.Unreachable(e, notReached(e, err)))
		},
	}
}

// forward has another broker answer. The client never sees a redirect.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, e *node.ElsewhereError) {
	w.Header().Del(wire.HeaderIndex) // the answer brings the other broker's
	w.Header().Del(wire.HeaderHome)
	if p := unasked(r, e); p != nil {
		s.refuse(w, r, p)
		return
	}
	if r.URL.Query().Has("index") { // it waits there, and holds a connection here
		leave, err := s.enter()
		if err != nil {
			s.refuse(w, r, problem.Of(err))
			return
		}
		defer leave()
	}
	ctx, cancel := s.stop.Until(r.Context())
	defer cancel()
	s.proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, elsewhereKey{}, e)))
}

// askedAt is the site whose broker a client asked: what another broker that passed the
// request on says, else this one.
func (s *Server) askedAt(r *http.Request) string {
	if via := r.Header.Get(wire.HeaderVia); hops(r) > 0 && fsm.ValidSite(via) {
		return via
	}
	return s.broker.Site()
}

// hops counts how often a request was passed on. What cannot be read counts as
// too often.
func hops(r *http.Request) int {
	text := r.Header.Get(wire.HeaderHops)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxHops {
		return maxHops
	}
	return n
}
