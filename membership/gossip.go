package membership

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/rs/zerolog"
)

// Gossip is this site's part in the gossip. All methods may be called from any
// goroutine.
type Gossip struct {
	cfg   Config
	t     timing
	log   zerolog.Logger
	limit *limiter

	keys       *keys
	table      *table
	delegate   *delegate
	logAdapter *logAdapter
	trans      *transport
	list       *memberlist.Memberlist // set before begun is closed
	begun      chan struct{}          // closed once this site has an address to tell

	events  chan Event
	changed chan struct{} // capacity 1: our metadata changed

	rejoinNow chan struct{} // capacity 1: do not wait for the next round

	ctx    context.Context // ends when Close begins
	cancel context.CancelFunc
	active context.Context // ends when Leave or Close begins
	rest   context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex    // guards the next two, and writes of delegate.mine
	closed  bool          // Invariant: only becomes true.
	leaving chan struct{} // nil until Leave; closed when the leave is over
	leave   error         // set before leaving is closed

	sending   sync.Mutex // held while memberlist sends news of ours
	closeOnce sync.Once
	closeErr  error
}

// Open starts to gossip. It waits for nobody: without a member that answers,
// it goes on trying, and others may join through this one. As long as the name in
// Advertise is not found it is silent, and goes on looking it up.
func Open(cfg Config) (*Gossip, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Gossip{
		cfg: cfg, t: cfg.Profile.timing(), log: cfg.Logger,
		events: make(chan Event), changed: make(chan struct{}, 1), begun: make(chan struct{}),
		rejoinNow: make(chan struct{}, 1),
	}
	if cfg.timing != nil {
		g.t = *cfg.timing
	}
	g.limit = newLimiter(g.t.logEvery, time.Now)
	g.table = newTable(cfg.Site, time.Now)
	g.logAdapter = &logAdapter{log: cfg.Logger, limit: g.limit, suspect: g.table.suspected}
	g.logAdapter.unheard.now, g.logAdapter.unheard.told = time.Now, func() string { return g.trans.advertise.String() }
	g.delegate = &delegate{
		table: g.table, federation: cfg.Federation, known: cfg.Known, conflict: g.warnConflict,
		left: make(chan struct{}, 1),
	}
	g.delegate.mine.Store(&meta{Meta: cfg.Meta, federation: cfg.Federation, incarnation: cfg.Incarnation})
	var err error
	if g.keys, err = newKeys(cfg.secret(), cfg.Generation, g.t.keyDelay, time.Now); err != nil {
		return nil, err
	}
	if g.trans, err = listen(&cfg, g.t, g.limit); err != nil {
		return nil, err
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.active, g.rest = context.WithCancel(g.ctx)
	g.wg.Go(g.pump)
	if addr, why := g.ownAddress(); why != nil {
		g.wg.Go(func() { g.beginLater(why) })
	} else if err = g.startMemberlist(addr); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// startMemberlist lets this site be seen at an address.
func (g *Gossip) startMemberlist(addr netip.AddrPort) (err error) {
	g.trans.serve(addr)
	if g.list, err = memberlist.Create(g.memberlistConfig()); err != nil {
		return fmt.Errorf("start gossip: %w", err)
	}
	close(g.begun)
	g.wg.Go(g.sendMetaLoop)
	g.wg.Go(g.rejoinLoop)
	return nil
}

func (g *Gossip) memberlistConfig() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = g.cfg.Site
	c.Label, c.SkipInboundLabelCheck = g.cfg.label(), true // the transport has checked it
	c.Keyring = g.keys.ring
	c.Transport = g.trans
	if g.cfg.wrap != nil {
		c.Transport = g.cfg.wrap(g.trans)
	}
	c.BindPort = int(g.trans.advertise.Port())
	c.Delegate, c.Alive, c.Events, c.Conflict, c.Ping = g.delegate, g.delegate, g.delegate, g.delegate, g.delegate
	c.Logger = g.logAdapter.logger()

	c.ProbeInterval, c.ProbeTimeout = g.t.probe, g.t.ack
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = g.t.suspicion, 1
	c.AwarenessMaxMultiplier = g.t.patience
	c.GossipInterval, c.GossipNodes, c.RetransmitMult = g.t.gossip, g.t.k, g.t.retransmit
	c.GossipToTheDeadTime, c.DeadNodeReclaimTime = g.t.deadTime, g.t.reclaim
	c.PushPullInterval, c.TCPTimeout = g.t.syncing, g.t.stream
	c.UDPBufferSize = packetFill
	c.EnableCompression = false // news is small, and a packet stays what it looks like
	return c
}

// Addr returns the gossip address that others send to; the zero one as long as
// the name in Config.Advertise is not found.
func (g *Gossip) Addr() netip.AddrPort {
	if !g.hasBegun() {
		return netip.AddrPort{}
	}
	return g.trans.advertise
}

func (g *Gossip) hasBegun() bool {
	select {
	case <-g.begun:
		return true
	default:
		return false
	}
}

// Members returns every site heard of, this one included, in the order of
// their names; those that died or left stay until MaxMembers are known.
func (g *Gossip) Members() []Member { return g.table.members() }

// Member returns one site, if it was heard of.
func (g *Gossip) Member(site string) (m Member, ok bool) { return g.table.member(site) }

// Events brings each change of a member, this site included, beginning with
// the members found at Open. A reader that is slow misses steps between, never
// a member's last state. The channel is closed by Close.
func (g *Gossip) Events() <-chan Event { return g.events }

// pump offers the oldest news, as it stands at the moment it is taken.
func (g *Gossip) pump() {
	defer close(g.events)
	for {
		m, version, ok := g.table.next()
		out := g.events
		if !ok {
			out = nil
		}
		select {
		case out <- Event{Member: m}:
			g.table.read(m.Site, version)
		case <-g.table.poke:
		case <-g.ctx.Done():
			return
		}
	}
}

// SetMeta changes what this site tells about itself; the others learn it
// within moments. It fails with ErrConfig or ErrClosed.
func (g *Gossip) SetMeta(m Meta) error {
	if err := m.validate(); err != nil {
		return err
	}
	return g.changeMeta(func(mine *meta) { mine.Meta = m })
}

// UpdateIncarnation tells the others under which registration the broker runs.
// It fails with ErrClosed.
func (g *Gossip) UpdateIncarnation(n uint64) error {
	return g.changeMeta(func(mine *meta) { mine.incarnation = n })
}

func (g *Gossip) changeMeta(change func(*meta)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.leaving != nil {
		return fmt.Errorf("%w: nothing more is told of %s", ErrClosed, g.cfg.Site)
	}
	mine := *g.delegate.mine.Load()
	change(&mine)
	g.delegate.mine.Store(&mine)
	select {
	case g.changed <- struct{}{}:
	default:
	}
	return nil
}

func (g *Gossip) sendMetaLoop() {
	for {
		select {
		case <-g.active.Done():
			return
		case <-g.changed:
			g.sendMeta()
		}
	}
}

// sendMeta sends our metadata. What is not sent in time goes on in the background.
func (g *Gossip) sendMeta() {
	g.sending.Lock()
	defer g.sending.Unlock()
	if err := g.list.UpdateNode(g.t.spread); err != nil {
		g.log.Debug().Err(err).Msg("gossip: update not sent in time")
	}
}

// Leave tells the others that this site goes on purpose, and waits until the
// news has been sent; members show it as Left. Call Close afterwards. If ctx
// ends first, leaving goes on. It fails with ErrClosed after Close.
func (g *Gossip) Leave(ctx context.Context) error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return fmt.Errorf("leave gossip: %w", ErrClosed)
	}
	if g.leaving == nil {
		g.leaving = make(chan struct{})
		mine := *g.delegate.mine.Load()
		mine.leaving = true
		g.delegate.mine.Store(&mine)
		g.rest()
		g.wg.Go(g.depart)
	}
	g.mu.Unlock()
	select {
	case <-g.leaving:
		return g.leave
	case <-ctx.Done():
		return fmt.Errorf("leave gossip: %w", context.Cause(ctx))
	}
}

// depart says twice that we go: in the metadata, which tells those that will
// find us gone that we have not died, and in memberlist's own way.
func (g *Gossip) depart() {
	defer close(g.leaving)
	if !g.hasBegun() { // nobody knows of this site
		return
	}
	_ = g.untilSent(func() error { // it has no error
		g.sendMeta()
		return nil
	}, func(_, others bool) bool { return !others })
	// memberlist must not be shut down before it has begun to leave.
	err := g.untilSent(func() error { return g.list.Leave(g.t.spread) },
		func(self, others bool) bool { return !self && !others })
	if err != nil {
		g.leave = fmt.Errorf("leave gossip: not all were told: %w", err)
	}
}

// untilSent sends news of ours until it is sent, or unheard says of who is there that nobody will hear it. memberlist
// looks for others only before it waits, and sends nothing to those that have left: the last of sites that stop at once
// would wait for all of the time that news may take.
func (g *Gossip) untilSent(send func() error, unheard func(self, others bool) bool) error {
	sent := make(chan error, 1)
	go func() { sent <- send() }()
	for !unheard(g.present()) {
		select {
		case err := <-sent:
			return err
		case <-g.delegate.left:
		}
	}
	return nil
}

// present reports whether this site, and any other one, has neither died nor left.
func (g *Gossip) present() (self, others bool) {
	for _, n := range g.list.Members() {
		self, others = self || n.Name == g.cfg.Site, others || n.Name != g.cfg.Site
	}
	return self, others
}

// Close stops; without Leave, the others will find this site dead. A leave
// under way ends first, within seconds. Close waits for all goroutines but
// memberlist's last probe, which ends by itself within a few probe intervals,
// and its wait to send what nobody is left to hear, which ends within the time that news may take.
// It may be called again.
func (g *Gossip) Close() error {
	g.closeOnce.Do(func() {
		g.mu.Lock()
		g.closed = true
		leaving := g.leaving
		g.mu.Unlock()
		if leaving != nil {
			<-leaving
		}
		g.logAdapter.quiet.Store(true)
		g.cancel()
		err := g.trans.Shutdown()
		g.wg.Wait()
		if g.hasBegun() {
			err = errors.Join(err, g.list.Shutdown())
		}
		g.closeErr = err
	})
	return g.closeErr
}

func (g *Gossip) warnConflict(site string, held, other netip.AddrPort) {
	g.limit.warn(&g.log, "conflict "+site).Str("site", site).Stringer("held", held).Stringer("other", other).
		Msg("gossip: two addresses claim one site name: if both brokers run, stop one of them")
}
