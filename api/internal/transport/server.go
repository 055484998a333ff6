// Package transport is what stands between a network of strangers and the API: it
// accepts connections, bounds how many there are and how long each may take, and reads
// bodies. It knows neither broker nor operation.
package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"
)

// Config of a Server; all fields are required but those that may be nil.
type Config struct {
	Listen   string // host:port; port 0 takes a free one
	MaxConns int    // connections at a time; more wait to be accepted
	// ConnRate is how many connections a second one address may open, 0 = any number; OverRate is called for each one
	// beyond, which is closed.
	ConnRate      int
	OverRate      func()
	HeaderTimeout time.Duration
	IdleTimeout   time.Duration
	TLS           *tls.Config // nil: clients speak plain HTTP
	// Misdialed returns what to answer to a connection that begins so, since it means
	// another port; nil: it does not. May be nil.
	Misdialed func(first [4]byte) []byte
	// Peers brings the connections of other brokers, nil: there are none. From marks the requests of one.
	Peers net.Listener
	From  func(ctx context.Context, conn net.Conn) context.Context
	// Operator brings connections of programs on this machine, a Unix socket; nil: there is none. Only those that run
	// as the broker's user, or as root, are taken.
	Operator net.Listener
}

// Server accepts connections.
type Server struct {
	Stop  *Stop
	cfg   Config
	log   zerolog.Logger
	http  *http.Server
	peers *http.Server // the other brokers'; nil without Config.Peers
	local *http.Server // the operator's; nil without Config.Operator
	conns *conns

	mu       sync.Mutex
	listener net.Listener  // guarded by mu; nil before Start
	served   chan struct{} // closed when Serve has returned; nil before Start
}

// New builds a server that does not listen yet.
func New(cfg Config, logger zerolog.Logger) *Server {
	s := &Server{
		Stop: newStop(), cfg: cfg, log: logger, conns: newConns(cfg.MaxConns - cfg.MaxConns/8),
		peers: newPeers(&cfg, logger), local: newOperators(&cfg, logger),
	}
	s.http = &http.Server{
		ReadHeaderTimeout: cfg.HeaderTimeout, IdleTimeout: cfg.IdleTimeout,
		MaxHeaderBytes: 64 << 10, ConnState: s.conns.changed, ErrorLog: NewErrorLog(logger),
	}
	return s
}

// Crowded reports whether answers should end their connections.
func (s *Server) Crowded() bool { return s.conns.crowd() }

// sendBytes bounds what the kernel holds for a client that does not take it;
// by itself it would be up to 4 MiB for each.
const sendBytes = 512 << 10

// boundedSends makes listeners whose connections are bounded so.
var boundedSends = net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
	if cause := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, sendBytes)
	}); cause != nil {
		return cause
	}
	return err
}}

// Start listens and serves in the background: clients and the operator by public, other brokers by peers. The error
// says which address could not be taken.
func (s *Server) Start(public, peers http.Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return errors.New("start http: already started")
	}
	l, err := boundedSends.Listen(context.Background(), "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for http on %s: %w", s.cfg.Listen, err)
	}
	s.listener, s.served, s.http.Handler = l, make(chan struct{}), public
	serve := s.serving(l)
	var running sync.WaitGroup
	if s.peers != nil {
		s.peers.Handler = peers
		running.Go(s.servePeers)
	}
	if s.local != nil {
		s.local.Handler = public
		running.Go(s.serveOperator)
	}
	go func() {
		defer close(s.served)
		defer running.Wait()
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Msg("http server stopped")
		}
	}()
	return nil
}

// serving returns how to serve clients on a listener.
func (s *Server) serving(l net.Listener) (serve func() error) {
	l = newPaced(l, s.cfg.ConnRate, s.cfg.OverRate, s.log)
	misdialed := &redirecting{Listener: l, answer: s.cfg.Misdialed, log: s.log}
	if s.cfg.TLS != nil {
		s.http.TLSConfig = s.secured(s.cfg.TLS, misdialed.complain)
		l = netutil.LimitListener(securedOnly{l}, s.cfg.MaxConns)
		return func() error { return s.http.ServeTLS(l, "", "") }
	}
	if s.cfg.Misdialed != nil {
		l = misdialed
	}
	l = netutil.LimitListener(l, s.cfg.MaxConns)
	return func() error { return s.http.Serve(l) }
}

// Addr returns the address that Start took, "" before.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Shutdown ends followed logs, lets other requests finish until ctx ends, and
// then cuts what is left. It is idempotent and safe before Start.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Stop.begin()
	err := shutDown(ctx, s.http)
	for _, server := range []*http.Server{s.peers, s.local} {
		if server != nil {
			err = errors.Join(err, shutDown(ctx, server))
		}
	}
	s.mu.Lock()
	served := s.served
	s.mu.Unlock()
	if served != nil {
		<-served
	}
	return err
}

func shutDown(ctx context.Context, server *http.Server) error {
	err := server.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("shut down http: %w", errors.Join(err, server.Close()))
	}
	return err
}
