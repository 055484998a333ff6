package raftlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Open starts a member. With Join it returns once a member has admitted this
// node, or when ctx ends; ctx is not used afterwards.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l := &Log{
		cfg: cfg, t: cfg.Profile.timing(), log: cfg.Logger,
		poke: make(chan struct{}, 1), changed: make(chan struct{}, 1), life: relay.NewLife(), handed: newHanded(), closed: make(chan struct{}),
		opened: make(chan struct{}), backs: make(chan struct{}, maxDialBacks), instance: rand.Text(),
	}
	if cfg.timing != nil {
		l.t = *cfg.timing
	}
	if l.cfg.net == nil {
		l.cfg.net = &relay.Network{}
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.open(ctx); err != nil {
		l.cancel()
		return nil, fmt.Errorf("open log: %w", errors.Join(err, l.release()))
	}
	l.start()
	close(l.opened)
	return l, nil
}

// release gives back what Open took, whatever of it there is.
func (l *Log) release() error {
	var errs []error
	if l.mux != nil {
		l.mux.Close()
	}
	if l.store != nil {
		errs = append(errs, l.store.Close())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	return errors.Join(errs...)
}

func (l *Log) open(ctx context.Context) error {
	err := compare.Refuse(l.cfg.Evidence)
	if err != nil {
		return err
	}
	if l.lock, err = relay.LockDir(l.cfg.Dir); err != nil {
		return err
	}
	m, err := loadMember(l.cfg.Dir)
	if err != nil {
		return err
	}
	if m != nil {
		if l.line, err = m.check(&l.cfg); err != nil {
			return err
		}
	} else if !l.cfg.Bootstrap && len(l.cfg.Join) == 0 {
		return fmt.Errorf("%w: %s: start it with --bootstrap to found a federation, or --join HOST:PORT to enter one",
			ErrNoData, l.cfg.Dir)
	}
	if err = l.listen(); err != nil {
		return err
	}
	isNew := m == nil
	if isNew {
		m, err = l.enter(ctx)
	}
	if err == nil {
		err = l.openStore(m)
	}
	if err == nil && !isNew && len(m.Through) > 0 {
		err = l.rejoin(ctx, m)
	}
	if err != nil {
		return err
	}
	if len(m.Through) > 0 {
		l.member = m
	}
	l.stream.fed = l.line.id
	return l.openRaft(m)
}

// enter makes an empty directory a member's.
func (l *Log) enter(ctx context.Context) (*member, error) {
	l.line = lineage{federation: l.cfg.Federation, id: l.cfg.Federation}
	if len(l.cfg.Join) > 0 {
		q := joinRequest{}
		if l.cfg.Federation != [16]byte{} {
			q.Federation = hex.EncodeToString(l.cfg.Federation[:])
		}
		var err error
		if l.line, err = l.join(ctx, l.cfg.Join, q); err != nil {
			return nil, err
		}
	}
	m := newMember(&l.cfg, l.line)
	m.Through = l.cfg.Join
	return m, m.save(l.cfg.Dir)
}

// rejoin has a member without a configuration admitted: one that dropped its log
// to follow another epoch, or one that ended before the leader had reached it.
func (l *Log) rejoin(ctx context.Context, m *member) error {
	if has, err := l.hasLog(); has || err != nil {
		return err
	}
	if len(l.cfg.Join) > 0 {
		m.Through = l.cfg.Join
		if err := m.save(l.cfg.Dir); err != nil {
			return err
		}
	}
	_, err := l.join(ctx, m.Through, l.line.request())
	return err
}

// listen binds the peer port. From now on this member says who it is: the leader
// asks it before it is admitted. All else waits for its lineage (start).
func (l *Log) listen() error {
	ln, addr, err := relay.Listen(l.cfg.Listen, l.cfg.Advertise)
	if err != nil {
		return err
	}
	l.mux = relay.NewMux(ln, l.cfg.Site, l.t.handshake, l.log, l.cfg.net)
	l.dialer = dialer{&relay.Dialer{Net: l.cfg.net, Site: l.cfg.Site, Known: l.cfg.Known, Vouch: l.vouch}}
	l.stream = newStream(serverAddress(l.cfg.Site, addr), l.dialer, l.mux)
	l.stream.find = l.configured
	l.mux.Handle(relay.KindRaft, func(conn net.Conn, p relay.Preamble) { l.trans.serve(conn, p) })
	l.mux.Handle(relay.KindForward, func(conn net.Conn, p relay.Preamble) { l.calls.Serve(conn, p) })
	l.mux.Handle(relay.KindJoin, l.serveJoin)
	if _, compares := l.cfg.Machine.(coord.Checkpointed); compares {
		l.mux.Handle(relay.KindCompare, func(conn net.Conn, p relay.Preamble) { l.checker.Serve(conn, p) })
	}
	l.mux.Serve()
	return nil
}

// openStore opens what raft has kept.
func (l *Log) openStore(m *member) error {
	bolt, err := m.openStore(l.cfg.Dir)
	if err != nil {
		return err
	}
	if l.cfg.disk != nil {
		bolt = l.cfg.disk(bolt)
	}
	l.store = newStore(bolt, l.cfg.Hooks, l.fail)
	if err = checkTerm(l.store, l.cfg.Dir); err != nil {
		return err
	}
	if l.snaps, err = raft.NewFileSnapshotStoreWithLogger(l.cfg.Dir, 2, raftLogger(l.log)); err != nil {
		return fmt.Errorf("open snapshots: %w", err)
	}
	return nil
}

// hasLog reports whether this member has a log or a snapshot: each begins with a
// configuration. A term alone is none: a member without one may have voted.
func (l *Log) hasLog() (bool, error) {
	last, err := l.store.LastIndex()
	if err != nil || last > 0 {
		return last > 0, err
	}
	snaps, err := l.snaps.List()
	return len(snaps) > 0, err
}

func (l *Log) openRaft(m *member) error {
	logger := raftLogger(l.log)
	l.trans = newTransport(l.stream, l.cfg.Site, l.t, logger)
	begun := make(chan struct{})
	l.machine = &machine{
		m: l.cfg.Machine, fail: l.fail, begun: begun, onApply: l.applying,
		onConfig: func() { coord.Signal(l.poke) },
	}
	l.calls = relay.New(l.ctx, relay.Config{
		Site: l.cfg.Site, Backend: backend{l}, Position: &l.machine.position, Mux: l.mux, Dialer: l.dialer.Dialer,
		Timing: l.t.calls(), Hooks: relay.Hooks{Entry: l.cfg.Hooks.Entry, Forward: l.cfg.Hooks.Forward},
		Ready: func() { coord.Signal(l.poke) },
	}, l.line.id)
	l.machine.calls = l.calls
	rc := l.raftConfig()
	rc.Logger = logger
	var err error
	if m.Founder {
		err = l.bootstrap(rc)
	}
	if err == nil {
		l.raft, err = raft.NewRaft(rc, l.machine, l.store, l.store, l.snaps, l.trans)
	}
	if err != nil {
		_ = l.trans.Close()
		return fmt.Errorf("start raft in %s: %w", l.cfg.Dir, err)
	}
	l.trans.raft.Store(new(view(l.raft)))
	l.halt = sync.OnceFunc(func() {
		l.given.end()
		_, _ = l.raft.Shutdown().Error(), l.trans.Close()
	})
	l.store.running.Store(true)
	close(begun)
	return nil
}

// applying tells the followers of a commit, if this member leads.
func (l *Log) applying(e *raft.Log) {
	if l.raft.State() == raft.Leader && l.raft.CurrentTerm() == e.Term {
		l.trans.commit(e, l.calls.Busy())
	}
}

func (l *Log) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(l.cfg.Site)
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = l.t.heartbeat, l.t.election, l.t.lease
	c.CommitTimeout, c.MaxAppendEntries = l.t.commit, l.t.maxAppend
	c.SnapshotThreshold, c.SnapshotInterval, c.TrailingLogs = l.t.snapshotEntries, l.t.snapshotEvery, l.t.trailing
	c.NoLegacyTelemetry = true
	return c
}

// bootstrap founds the group, unless an earlier start has done so.
func (l *Log) bootstrap(rc *raft.Config) error {
	done, err := raft.HasExistingState(l.store, l.store, l.snaps)
	if err != nil || done {
		return err
	}
	return raft.BootstrapCluster(rc, l.store, l.store, l.snaps, l.trans, raft.Configuration{
		Servers: []raft.Server{{ID: rc.LocalID, Address: l.trans.LocalAddr()}},
	})
}

func newTransport(s *stream, site string, t timing, logger hclog.Logger) *transport {
	nt := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, ServerAddressProvider: byName{}, MaxPool: 4, MaxRPCsInFlight: 1, Timeout: t.rpc, Logger: logger,
	})
	return &transport{
		NetworkTransport: nt, screened: make(chan raft.RPC), shut: make(chan struct{}),
		complain: s.mux.Refuse, within: t.rpc,
		self: raft.RPCHeader{
			ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(site), Addr: []byte(nt.LocalAddr()),
		},
		peers: map[raft.ServerID]*progress{},
	}
}

// start runs the goroutines.
func (l *Log) start() {
	l.startComparing()
	l.mux.SetGroup(l.line.id)
	l.calls.Start()
	for _, run := range []func(context.Context){l.watch, l.catchUp, l.settleAddress, l.watchKin} {
		l.wg.Go(func() { run(l.ctx) })
	}
	e := newElectorate()
	l.wg.Go(func() { every(l.ctx, l.t.promote, func() { l.promote(l.ctx, e) }) })
	h := &handOvers{}
	l.wg.Go(func() { every(l.ctx, l.t.promote, func() { l.leadOrHandOver(l.ctx, h) }) })
	l.wg.Go(func() { every(l.ctx, l.t.snapshotEvery/20, l.snapshot) })
	l.wg.Go(func() { every(l.ctx, l.t.stall/6, l.watchDisk) })
}
