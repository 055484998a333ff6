package api

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Config of a Server; zero fields take DefaultConfig's values.
type Config struct {
	Listen string // host:port; port 0 takes a free one
	// Names are host names that clients may ask by, beside addresses, localhost
	// and the host of Listen; a port is passed over.
	Names    []string
	Version  string // of the program, for the OpenAPI document
	MaxBody  int64  // bytes of a body that is not NDJSON
	MaxLines int64  // bytes of an NDJSON body
	MaxConns int    // connections at a time; more wait to be accepted
	// MaxWaiters bounds event streams, blocking reads and open pages at a time;
	// more are refused. Default and most: half of MaxConns.
	MaxWaiters int
	// MaxFollowers bounds followed logs. Default and most: a quarter of MaxConns.
	MaxFollowers int

	HeaderTimeout time.Duration // until a request's header has come
	BodyTimeout   time.Duration // without a byte of a body, or without room to write an answer
	IdleTimeout   time.Duration // of a connection between requests
	PeerTimeout   time.Duration // until another broker begins to answer a request passed on
	Archive       Archive       // nil = none is kept
	Recent        Recent        // nil = pages show no past
	// Federation is the id by which brokers tell theirs from others; "" = not told.
	Federation string
	Contacts   Contacts // nil = nobody checks addresses
	// Misdialed returns what to answer to a connection that begins so, since it means
	// another port of the broker; nil: it does not. May be nil.
	Misdialed func(first [4]byte) []byte
}

// DefaultConfig returns the limits that fit a broker on a small machine.
func DefaultConfig() Config {
	return Config{
		Listen: "127.0.0.1:7700", Version: "dev", MaxBody: jobspec.MaxSpecBytes, MaxLines: 64 << 20, MaxConns: 4096,
		HeaderTimeout: 10 * time.Second, BodyTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		PeerTimeout: 10 * time.Second, MaxWaiters: 2048, MaxFollowers: 1024,
	}
}

// withDefaults fills zero fields.
func (c Config) withDefaults() Config {
	d := DefaultConfig()
	orElse(&c.Listen, d.Listen)
	orElse(&c.Version, d.Version)
	orElse(&c.MaxBody, d.MaxBody)
	orElse(&c.MaxLines, d.MaxLines)
	orElse(&c.MaxConns, d.MaxConns)
	orElse(&c.MaxWaiters, d.MaxWaiters)
	orElse(&c.MaxFollowers, d.MaxFollowers)
	c.MaxWaiters, c.MaxFollowers = min(c.MaxWaiters, c.MaxConns/2), min(c.MaxFollowers, c.MaxConns/4)
	orElse(&c.HeaderTimeout, d.HeaderTimeout)
	orElse(&c.BodyTimeout, d.BodyTimeout)
	orElse(&c.IdleTimeout, d.IdleTimeout)
	orElse(&c.PeerTimeout, d.PeerTimeout)
	return c
}

func orElse[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Server answers HTTP for one broker.
type Server struct {
	cfg     Config
	broker  Broker
	log     zerolog.Logger
	metrics *metrics
	huma    huma.API
	http    *http.Server
	proxy   *httputil.ReverseProxy
	peers   *peerTransport
	origins http.CrossOriginProtection // a browser on this machine reaches the loopback, too
	names   hostNames
	conns   *conns
	// waiters are event streams, blocking reads and open pages; followers follow logs.
	waiters, followers places
	// bodies are those that come slowly.
	bodies places
	// untaken are the bytes of large answers that clients have not taken yet.
	untaken atomic.Int64
	frames  frames
	pages   *web.Pages
	// searches has one for each search among all brokers that goes on.
	searches chan struct{}
	// archiveReads has one for each report or export that goes on.
	archiveReads chan struct{}

	// stopping is closed when Shutdown begins: it ends streams that would
	// never end by themselves.
	stopping chan struct{}
	stopOnce sync.Once

	mu       sync.Mutex
	listener net.Listener  // guarded by mu; nil before Start
	served   chan struct{} // closed when Serve has returned; nil before Start
}

// New builds a server that does not listen yet. It registers its own metrics
// in reg, and serves all of reg's at /metrics.
func New(cfg Config, b Broker, reg *prometheus.Registry, logger zerolog.Logger) *Server {
	s := &Server{
		cfg: cfg.withDefaults(), broker: b, log: logger, metrics: newMetrics(reg), stopping: make(chan struct{}), searches: make(chan struct{}, maxSearches),
		archiveReads: make(chan struct{}, maxArchiveReads),
	}
	s.waiters.most, s.waiters.what = int64(s.cfg.MaxWaiters), "event streams, blocking reads and open pages"
	s.followers.most, s.followers.what = int64(s.cfg.MaxFollowers), "followed logs"
	for _, p := range []*places{&s.waiters, &s.followers} {
		p.name, p.title = "too-many-waiters", "Too many clients wait for what happens"
	}
	s.bodies = places{most: int64(max(1, s.cfg.MaxConns/8)), name: "too-many-bodies", title: "Too many bodies come slowly", what: "bodies that take longer than a second"}
	s.conns = newConns(s.cfg.MaxConns - s.cfg.MaxConns/8)
	s.names = newHostNames(append([]string{s.cfg.Listen}, cfg.Names...))
	s.peers = newPeers(s.cfg.PeerTimeout)
	s.proxy = s.newProxy()
	handler := s.newRouter()
	s.huma = huma.NewAPI(humaConfig(s.cfg.Version), handler)
	s.routes()
	s.pages = s.newPages()
	s.showPages(handler)
	s.http = &http.Server{
		Handler: handler, ReadHeaderTimeout: s.cfg.HeaderTimeout, IdleTimeout: s.cfg.IdleTimeout,
		MaxHeaderBytes: 64 << 10, ConnState: s.conns.changed, ErrorLog: log.New(lineWriter{logger}, "", 0),
	}
	return s
}

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

// Start listens and serves in the background. The error says which address
// could not be taken.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return errors.New("start http: already started")
	}
	l, err := boundedSends.Listen(context.Background(), "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for http on %s: %w", s.cfg.Listen, err)
	}
	s.listener, s.served = l, make(chan struct{})
	if s.cfg.Misdialed != nil {
		l = &redirecting{Listener: l, answer: s.cfg.Misdialed, log: s.log}
	}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(netutil.LimitListener(l, s.cfg.MaxConns)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Msg("http server stopped")
		}
	}()
	return nil
}

// Addr is the address that Start took, "" before.
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
	s.stopOnce.Do(func() { close(s.stopping) })
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("shut down http: %w", errors.Join(err, s.http.Close()))
	}
	s.mu.Lock()
	served := s.served
	s.mu.Unlock()
	if served != nil {
		<-served
	}
	s.peers.CloseIdleConnections()
	return err
}

// ServeHTTP lets tests and other listeners use the routes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.http.Handler.ServeHTTP(w, r) }

// lineWriter takes what net/http logs by itself, such as a client's garbage.
type lineWriter struct{ log zerolog.Logger }

func (w lineWriter) Write(p []byte) (int, error) {
	w.log.Debug().Str("from", "net/http").Msg(problem.OneLine(string(p)))
	return len(p), nil
}
