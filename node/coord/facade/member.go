package facade

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Member is the part of a backend's Log that does not depend on what keeps the log.
// Its methods up to Compared are coord.Log's; the fields and all else are for the
// backend that embeds it.
type Member struct {
	Ctx    context.Context //nolint:containedctx // it ends when Close or a failure begins
	Cancel context.CancelFunc
	WG     sync.WaitGroup // the backend's goroutines; Stop waits for them
	Mux    *relay.Mux     // nil before Listen
	Calls  *relay.Calls   // nil before Bind

	cfg   *Config
	log   zerolog.Logger
	index func() uint64 // the Machine's entry number
	poke  func()        // has the backend look at what was set here

	lock                *os.File
	addr                string
	http                *relay.HTTPListener // nil before Listen
	federation, lineage [16]byte
	checker             *compare.Checker // nil if the machine has no checkpoints

	resting atomic.Bool            // after Demote: this member does not stand for voter
	unfit   atomic.Pointer[string] // why this member should not lead; nil or "" = it may
	changed chan struct{}
	life    *life

	closeOnce sync.Once
	ended     chan struct{} // what Shut began has ended
	closeErr  error         // set before ended is closed
}

// New returns a member that has not begun; poke is called when it was told that it
// should not lead, or that it stands for voter, and must not block.
func New(cfg *Config, poke func()) *Member {
	if cfg.Net == nil {
		cfg.Net = &relay.Network{}
	}
	m := &Member{
		cfg: cfg, log: cfg.Logger, poke: poke, changed: make(chan struct{}, 1), life: newLife(),
		ended: make(chan struct{}),
	}
	m.Ctx, m.Cancel = context.WithCancel(context.Background())
	return m
}

// Federation returns the federation's id, which a joining member learns.
func (m *Member) Federation() [16]byte { return m.federation }

// Lineage names the epoch's members: those of different lineages do not talk to
// each other. It is a random id in a federation that was recovered or moved, the
// federation's own before.
func (m *Member) Lineage() [16]byte { return m.lineage }

// Addr returns the peer address that others dial.
func (m *Member) Addr() string { return m.addr }

// Propose implements coord.Log.
func (m *Member) Propose(ctx context.Context, cmds ...command.Command) ([]command.Result, error) {
	return m.Calls.Propose(ctx, cmds...)
}

// Sync implements coord.Log.
func (m *Member) Sync(ctx context.Context) (uint64, error) {
	if err := m.Calls.Sync(ctx); err != nil {
		return 0, err
	}
	return m.index(), nil
}

// Renew implements coord.Log.
func (m *Member) Renew(ctx context.Context, r coord.Renewal) error { return m.Calls.Renew(ctx, r) }

// Grant implements coord.Log.
func (m *Member) Grant(g coord.Grantor) { m.Calls.Grant(g) }

// Changed implements coord.Log.
func (m *Member) Changed() <-chan struct{} { return m.changed }

// Failed implements coord.Log.
func (m *Member) Failed() <-chan struct{} { return m.life.Failed() }

// Err implements coord.Log.
func (m *Member) Err() error { return m.life.Err() }

// SetUnfit implements coord.Log.
func (m *Member) SetUnfit(why string) {
	if old := m.unfit.Swap(&why); old == nil && why != "" || old != nil && *old != why {
		m.poke()
	}
}

// Remove implements coord.Log. The last voter cannot be removed.
func (m *Member) Remove(ctx context.Context, site string) error {
	if err := m.Calls.Remove(ctx, site); err != nil {
		return fmt.Errorf("remove site %s from the group: %w", site, err)
	}
	return nil
}

// Demote implements coord.Log. Whether a member stands is known to itself only:
// who looks for voters asks it.
func (m *Member) Demote(ctx context.Context, site string) error {
	return m.Calls.Demote(ctx, site, &m.resting, m.Stand)
}

// Stand implements coord.Log.
func (m *Member) Stand() {
	m.resting.Store(false)
	m.poke()
}

// Rest has this member not stand for voter, until Stand.
func (m *Member) Rest() { m.resting.Store(true) }

// Compared implements coord.Comparing.
func (m *Member) Compared() coord.Comparison { return m.checker.Compared() }

// UnfitWhy returns why this member should not lead, "" = it may.
func (m *Member) UnfitWhy() string {
	if why := m.unfit.Load(); why != nil {
		return *why
	}
	return ""
}

// Resting reports whether this member does not stand for voter.
func (m *Member) Resting() bool { return m.resting.Load() }

// SignalChanged says that something in the status has changed.
func (m *Member) SignalChanged() { coord.Signal(m.changed) }

// Claim takes the data directory, and refuses one whose state once differed from the
// group's.
func (m *Member) Claim() (err error) {
	if err = compare.Refuse(m.cfg.Evidence); err == nil {
		m.lock, err = LockDir(m.cfg.Dir)
	}
	return err
}

// Listen binds the peer port. What comes there is handled once the backend has had Mux
// serve.
func (m *Member) Listen(handshake time.Duration) error {
	ln, addr, err := listen(m.cfg.Listen, m.cfg.Advertise)
	if err == nil {
		m.addr = addr
		m.Mux = relay.NewMux(ln, m.cfg.Site, handshake, m.log, m.cfg.Net)
		m.http = relay.NewHTTPListener(m.Mux)
		if m.cfg.Enroll != nil {
			m.Mux.Handle(relay.KindEnroll, m.cfg.Enroll)
		}
		if m.cfg.Keys != nil {
			m.Mux.Handle(relay.KindKeys, m.cfg.Keys)
		}
		if m.cfg.Files != nil {
			m.Mux.Handle(relay.KindFiles, m.cfg.Files)
		}
		if m.cfg.Logs != nil {
			m.Mux.Handle(relay.KindLogs, m.cfg.Logs)
		}
		if m.cfg.Progress != nil {
			m.Mux.Handle(relay.KindProgress, m.cfg.Progress)
		}
	}
	return err
}

// Identify names the group that the member is of.
func (m *Member) Identify(federation, lineage [16]byte) {
	m.federation, m.lineage = federation, lineage
}

// Bind makes the member's calls; index returns the Machine's entry number, and ready is
// called when the first entry of a term that this member leads was ordered.
func (m *Member) Bind(b relay.Backend, d *relay.Dialer, t relay.Timing, at *relay.Position, index func() uint64,
	ready func(),
) {
	m.index = index
	m.Calls = relay.New(m.Ctx, relay.Config{
		Site: m.cfg.Site, Backend: b, Position: at, Mux: m.Mux, Dialer: d, Timing: t,
		Hooks: relay.Hooks{Entry: m.cfg.Hooks.Entry, Forward: m.cfg.Hooks.Forward}, Ready: ready,
		Proofs: coord.ProofsOf(m.cfg.Machine),
	}, m.federation, m.lineage)
}

// Comparing is how a backend compares states.
type Comparing struct {
	Members        func() []compare.Member // by the group's own word
	Stop           func(error)
	Remedy         string // how to go on behind a stop
	Every, Timeout time.Duration
}

// Compare compares this member's state with others' until Ctx ends, if its machine can.
func (m *Member) Compare(x Comparing) {
	machine, ok := m.cfg.Machine.(coord.Checkpointed)
	if !ok {
		return
	}
	cfg := compare.Config{
		Site: m.cfg.Site, Group: compare.Group{Federation: m.federation, Lineage: m.lineage}, Floor: m.Sync,
		Machine: machine, Members: x.Members, Refuse: m.Mux.Refuse, Stop: x.Stop,
		Dial: m.DialCompare, Dir: m.cfg.Evidence, Proofs: m.cfg.Proofs, Keep: m.cfg.Keep, Remedy: x.Remedy,
		Every: x.Every, Timeout: x.Timeout, Log: m.log,
	}
	if own := m.cfg.Net.Identity; own != nil {
		cfg.Identity = own
	}
	m.checker = compare.New(cfg)
	m.WG.Go(func() { m.checker.Run(m.Ctx) })
}

// DialCompare dials where the group has a member, and nowhere else: gossip's word, which
// may be a stranger's, must not bring hashes that stop this member.
func (m *Member) DialCompare(ctx context.Context, to compare.Member) (net.Conn, error) {
	d := relay.Dialer{Net: m.cfg.Net, Site: m.cfg.Site}
	return d.Dial(ctx, relay.Peer{Site: to.Site, Addr: to.Addr}, relay.KindCompare, m.lineage)
}

// Reach returns nil if something takes connections at a member's address, dead or alive otherwise.
func (m *Member) Reach(ctx context.Context, addr string) error { return m.cfg.Net.Reach(ctx, addr) }

// ServeCompare answers another member that compares states. REQUIRES: Compare was called,
// and the machine has checkpoints.
func (m *Member) ServeCompare(conn net.Conn, p relay.Preamble) { m.checker.Serve(conn, p) }

// Fail ends the log for a reason. It reports whether it was the first one: then the
// backend stops.
func (m *Member) Fail(err error) (first bool) {
	if first = m.life.Fail(err); first {
		m.log.Error().Err(err).Msg("coordination log stopped")
	}
	return first
}

// ClosedError returns the error of a call to a log that is closed, with what it failed of.
func (m *Member) ClosedError() error { return m.life.Closed() }

// Shut refuses calls and has stop called, once and in a goroutine of its own.
func (m *Member) Shut(stop func() error) {
	m.closeOnce.Do(func() {
		m.Calls.End()
		go func() {
			defer close(m.ended)
			m.closeErr = stop()
		}()
	})
}

// Ended is closed when what Shut began has ended.
func (m *Member) Ended() <-chan struct{} { return m.ended }

// CloseError returns what stop returned. REQUIRES: Ended is closed.
func (m *Member) CloseError() error { return m.closeErr }

// Stop ends what a member runs: entries in flight get a time to end, then nothing comes
// from peers, halt ends the backend's log, and all goroutines have ended.
func (m *Member) Stop(drain time.Duration, halt func()) {
	m.Cancel()
	m.Calls.Drain(drain)
	_ = m.http.Close()
	m.Mux.Close()
	m.Calls.CloseReads()
	halt()
	m.Calls.Wait()
	m.WG.Wait()
}

// Release frees the peer port and the data directory; it is safe after a partial open.
// Between them it frees what the backend has.
func (m *Member) Release(backend func() error) error {
	if m.Mux != nil {
		_ = m.http.Close()
		m.Mux.Close()
	}
	err := backend()
	if m.lock != nil {
		err = errors.Join(err, m.lock.Close())
	}
	return err
}
