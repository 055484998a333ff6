package api

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/outputs"
	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/transport"
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
	cfg       Config
	broker    Broker
	log       zerolog.Logger
	transport *transport.Server
	stop      *transport.Stop
	guard     *transport.Guard
	bodies    *transport.Bodies
	writers   *transport.Writers
	// waiters are event streams, blocking reads and open pages; followers follow logs;
	// slow are bodies that come slowly.
	waiters, followers, slow *transport.Places

	api     *rest.API
	reads   *reads
	metrics *metrics
	peers   *peers.Client
	frames  frames
	pages   *web.Pages
	outputs *outputs.Outputs
	// archiveReads has one for each report or export that goes on.
	archiveReads chan struct{}
}

// New builds a server that does not listen yet. It registers its own metrics
// in reg, and serves all of reg's at /metrics.
func New(cfg Config, b Broker, reg *prometheus.Registry, logger zerolog.Logger) *Server {
	s := &Server{
		cfg: cfg.withDefaults(), broker: b, log: logger, metrics: newMetrics(reg),
		archiveReads: make(chan struct{}, maxArchiveReads),
	}
	s.openTransport()
	s.reads = &reads{b, s.waiters, s.stop}
	s.peers = peers.New(peers.Config{
		Site: b.Site, Federation: s.cfg.Federation, Timeout: s.cfg.PeerTimeout, Blocks: isBlocking, Patience: maxWait,
		Waiters: s.waiters, Stop: s.stop, Refuse: s.refuse, Log: logger,
	})
	s.api = rest.New(s.cfg.Version, &gate{
		broker: b, transport: s.transport, guard: s.guard, bodies: s.bodies, writers: s.writers, reads: s.reads, peers: s.peers,
		metrics: s.metrics, refuse: s.refuse,
	}, logger)
	s.outputs = outputs.New(outputs.Config{Broker: b, API: s.api, Peers: s.peers, Followers: s.followers, Stop: s.stop, Log: logger})
	s.routes()
	s.pages = s.newPages()
	s.showPages()
	return s
}

// openTransport bounds what clients may take of this broker.
func (s *Server) openTransport() {
	c := &s.cfg
	s.transport = transport.New(transport.Config{
		Listen: c.Listen, MaxConns: c.MaxConns, HeaderTimeout: c.HeaderTimeout, IdleTimeout: c.IdleTimeout, Misdialed: c.Misdialed,
	}, s.log)
	s.stop = s.transport.Stop
	s.guard = transport.NewGuard(append([]string{c.Listen}, c.Names...))
	const name, title = "too-many-waiters", "Too many clients wait for what happens"
	s.waiters = transport.NewPlaces(c.MaxWaiters, name, title, "event streams, blocking reads and open pages")
	s.followers = transport.NewPlaces(c.MaxFollowers, name, title, "followed logs")
	s.slow = transport.NewPlaces(max(1, c.MaxConns/8), "too-many-bodies", "Too many bodies come slowly", "bodies that take longer than a second")
	s.bodies = transport.NewBodies(c.MaxBody, c.MaxLines, c.BodyTimeout, s.slow)
	s.writers = transport.NewWriters(c.BodyTimeout)
}

// Start listens and serves in the background. The error says which address
// could not be taken.
func (s *Server) Start() error { return s.transport.Start(s.api) }

// Addr is the address that Start took, "" before.
func (s *Server) Addr() string { return s.transport.Addr() }

// Shutdown ends followed logs, lets other requests finish until ctx ends, and
// then cuts what is left. It is idempotent and safe before Start.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.transport.Shutdown(ctx)
	s.peers.Close()
	return err
}

// ServeHTTP lets tests and other listeners use the routes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.api.ServeHTTP(w, r) }
