package api

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/auth"
	"github.com/cloudshare/cloudshare/api/internal/blobs"
	"github.com/cloudshare/cloudshare/api/internal/jobs"
	"github.com/cloudshare/cloudshare/api/internal/members"
	"github.com/cloudshare/cloudshare/api/internal/outputs"
	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/results"
	"github.com/cloudshare/cloudshare/api/internal/sight"
	"github.com/cloudshare/cloudshare/api/internal/tes"
	"github.com/cloudshare/cloudshare/api/internal/tokens"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files/imports"
	"github.com/cloudshare/cloudshare/node/files/uploads"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Config of a Server; zero fields take DefaultConfig's values.
type Config struct {
	Listen string // host:port; port 0 takes a free one
	// Names are host names that clients may ask by, besides addresses, localhost
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
	// Uploads keep what has come of large files that users send; nil: none are taken.
	Uploads *uploads.Uploads
	// Imports say which URLs are fetched; the zero value: none. The broker is their Store.
	Imports imports.Config
	// TESRoots are the folders of this site that URLs of TES tasks may name; the zero value: none.
	TESRoots exports.Roots
	// Federation is the id by which brokers tell theirs from others; "" = not told.
	Federation string
	Contacts   Contacts // nil = nobody checks addresses
	Access     Access   // nil = everybody may ask: for tests alone
	Rates      *Rates   // nil = DefaultRates
	Audit      Audit    // nil = no record is kept of who did what
	// Challenge is what 401 says in WWW-Authenticate, after Bearer, of where to log in; "" = nothing.
	Challenge string
	// Peers brings the connections of other sites' brokers, each with a method PeerSite; DialPeer opens one to the
	// broker of a site at its peer address, and fails if another one answers there. nil: there is no way to or from
	// them.
	Peers    net.Listener
	DialPeer func(ctx context.Context, site, addr string) (net.Conn, error)
	// Operator brings connections by which this site's operator asks without a token: of a Unix socket, from processes
	// of the broker's user or root. nil: there is no such way.
	Operator net.Listener
	// TLS is how clients are spoken to; nil: by plain HTTP, which is for the loopback or behind a proxy. Vouched says
	// that an authority vouches for its certificate, so that browsers may be told to insist on it.
	TLS     *tls.Config
	Vouched bool
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
	orElse(&c.Rates, &DefaultRates)
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
	transport *transport.Server
	api       *rest.API
	pages     *pages
	peers     *peers.Client
	audit     *auditing
	blobs     *blobs.Blobs
	tasks     *tes.Tasks
	// waiters are event streams, blocking reads and open pages; followers follow logs;
	// slow are bodies that come slowly.
	waiters, followers, slow *transport.Places
	// sending, writing and taking are requests that move files: see blobs.Config.
	sending, writing, taking *transport.Places
}

// New builds a server that does not listen yet. It registers its own metrics
// in reg, and serves all of reg's at /metrics.
func New(cfg Config, b Broker, reg *prometheus.Registry, logger zerolog.Logger) *Server {
	cfg = cfg.withDefaults()
	in := seen{sight.New(b), beneath{b}}
	metrics := newMetrics(reg)
	s := newBounded(&cfg, metrics, logger)
	stop := s.transport.Stop
	bodies := transport.NewBodies(cfg.MaxBody, cfg.MaxLines, cfg.BodyTimeout, s.slow)
	read := reads.New(b, s.waiters, stop)
	who := auth.New(cfg.Access, cfg.Challenge, *cfg.Rates, metrics.overRate)
	metrics.sessions(reg, who.Sessions)
	s.pages = &pages{waiters: s.waiters, followers: s.followers, auth: who, bodies: bodies}
	s.peers = peers.New(peers.Config{
		Site: b.Site, Federation: cfg.Federation, Dial: cfg.DialPeer, Timeout: cfg.PeerTimeout,
		Blocks: reads.IsBlocking, Patience: reads.MaxWait,
		Waiters: s.waiters, Stop: stop, Refuse: s.pages.refuse, Log: logger,
	})
	record := newAuditing(cfg.Audit, logger)
	s.audit = record
	s.api = rest.New(cfg.Version, &gate{
		broker: b, transport: s.transport, guard: transport.NewGuard(append([]string{cfg.Listen}, cfg.Names...)),
		auth: who, bodies: bodies,
		writers: transport.NewWriters(cfg.BodyTimeout), reads: read, peers: s.peers, metrics: metrics, audit: record,
		refuse: s.pages.refuse, insist: cfg.TLS != nil && cfg.Vouched,
	}, logger)
	out := outputs.New(outputs.Config{
		Broker: in, API: s.api, Peers: s.peers, Followers: s.followers, Stop: stop,
		Log: logger,
	})
	left := results.New(results.Config{Broker: in, API: s.api, Taking: s.taking, Log: logger})
	s.blobs = blobs.New(blobs.Config{
		Broker: b, API: s.api, Bodies: bodies, Uploads: cfg.Uploads, Imports: cfg.Imports,
		Sending: s.sending, Writing: s.writing, Taking: s.taking,
	})
	past := &reports{cfg.Archive, in.Archived, in.Whose, s.api, stop, logger, make(chan struct{}, maxArchiveReads)}
	shown := newSource(&cfg, in, out, left, s.peers, who, stop)
	if cfg.Archive != nil {
		shown.Usages = pageUsages{past}
	}
	shown.People = &people{b.Site(), b, b.Users, past, record}
	s.pages.api, s.pages.web = s.api, web.New(shown)

	jobs.New(jobs.Config{
		Broker: in, API: s.api, Reads: read, Bodies: bodies, Peers: s.peers, Accepted: metrics.accepted,
		Refused: metrics.refused, OverQuota: metrics.overQuota, Resolve: s.blobs.Resolve, Log: logger,
	}).Register()
	s.tasks = tes.New(tes.Config{
		Broker: in, API: s.api, Version: cfg.Version, Roots: cfg.TESRoots, Resolve: s.blobs.Resolve,
		HostFailed: imports.ErrFailed,
		Tail:       out.LastLines,
		Bodies:     transport.NewBodies(tes.MaxBody, cfg.MaxLines, cfg.BodyTimeout, s.slow),
		Took:       metrics.accepted.Inc,
		Refused: func(why error) {
			metrics.refused.Inc()
			var over *node.UserQuotaError
			if errors.As(why, &over) {
				metrics.overQuota(over.Quota)
			}
		}, Log: logger,
	})
	s.tasks.Register()
	members.New(members.Config{Broker: b, API: s.api, Reads: read, Bodies: bodies}).Register()
	tokens.New(tokens.Config{Site: b.Site, Store: cfg.Access, API: s.api, Bodies: bodies}).Register()
	(&federation{b, s.api, read, bodies, cfg.Contacts, cfg.Federation, cfg.Access}).register()
	(&events{broker: in, api: s.api, reads: read}).register()
	past.register()
	record.api = s.api
	record.register()
	out.Register()
	left.Register()
	s.blobs.Register()
	(&probes{b, s.api, metrics, s.pages.web}).register()
	s.pages.register()
	s.api.Protect(auth.Open)
	return s
}

// maxSending, maxWriting and maxTaking bound requests that move files. Each of maxWriting has a piece of 8 MiB in
// memory; all have files open.
const maxSending, maxWriting, maxTaking = 64, 32, 64

// newBounded bounds what clients may take of this broker.
func newBounded(cfg *Config, m *metrics, logger zerolog.Logger) *Server {
	const name, title = "too-many-waiters", "Too many clients wait for what happens"
	return &Server{
		transport: transport.New(transport.Config{
			Listen: cfg.Listen, MaxConns: cfg.MaxConns, HeaderTimeout: cfg.HeaderTimeout, IdleTimeout: cfg.IdleTimeout,
			TLS: cfg.TLS, Misdialed: cfg.Misdialed, Peers: cfg.Peers, From: peers.From, Operator: cfg.Operator,
			ConnRate: cfg.Rates.Connections, OverRate: func() { m.overRate(auth.BoundConnections) },
		}, logger),
		waiters:   transport.NewPlaces(cfg.MaxWaiters, name, title, "event streams, blocking reads and open pages", sharer),
		followers: transport.NewPlaces(cfg.MaxFollowers, name, title, "followed logs", sharer),
		slow:      transport.NewPlaces(max(1, cfg.MaxConns/8), "too-many-bodies", "Too many bodies come slowly", "bodies that take longer than a second", sharer),
		sending:   transport.NewPlaces(maxSending, "too-many-uploads", "Too many files are sent", "files on their way", sharer),
		writing:   transport.NewPlaces(maxWriting, "too-many-uploads", "Too many files are sent", "uploads on their way", sharer),
		taking:    transport.NewPlaces(maxTaking, "too-many-downloads", "Too many files are taken", "files on their way out", sharer),
	}
}

// Start listens and serves in the background. The error says which address
// could not be taken.
func (s *Server) Start() error {
	err := s.transport.Start(s.api, s.api)
	if err == nil {
		s.tasks.Start()
	}
	return err
}

// Addr returns the address that Start took, "" before.
func (s *Server) Addr() string { return s.transport.Addr() }

// Shutdown ends followed logs, lets other requests finish until ctx ends, and
// then cuts what is left. It is idempotent and safe before Start.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.transport.Shutdown(ctx)
	s.peers.Close()
	s.tasks.Close()
	s.blobs.Close()
	s.audit.refusals.flush()
	return err
}

// ServeHTTP answers as Start's listener does: whoever asks needs a token.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.api.ServeHTTP(w, r) }
