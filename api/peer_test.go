package api

import (
	"context"
	"net"
	"sync"
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
