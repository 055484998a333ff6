package api

import (
	"context"
	"net"
	"net/http/httptest"
	"sync"

	"github.com/cloudshare/cloudshare/api/internal/peers"
)

// peerAddrs are where the servers of a test are reached by other brokers.
var peerAddrs sync.Map // *Server → string

func peerOf(s *Server) string {
	addr, _ := peerAddrs.Load(s)
	text, _ := addr.(string)
	return text
}

// dialPeer reaches whoever is at an address: the peer port would make sure of the site.
func dialPeer(ctx context.Context, _, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// peerListener takes every connection for one of site-1's broker, which asks in most tests.
type peerListener struct{ net.Listener }

func (l peerListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return peerConn{conn}, err
}

type peerConn struct{ net.Conn }

func (peerConn) PeerSite() string { return "site-1" }

// askAsPeer answers one request of site-1's broker without a network.
func askAsPeer(s *Server, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r.WithContext(peers.From(r.Context(), peerConn{})))
	return w
}
