package raftlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Open starts a member. With Join it returns once a member has admitted this
// node, or when ctx ends; ctx is not used afterwards.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l := &Log{
		cfg: cfg, t: timingOf(cfg.Profile), log: cfg.Logger,
		poke: make(chan struct{}, 1), leadership: &leadership{handed: newHandoverCounts()},
		opened: make(chan struct{}), backs: make(chan struct{}, maxDialBacks), instance: rand.Text(),
	}
	if cfg.timing != nil {
		l.t = *cfg.timing
	}
	l.leadership.trips = newTripWatch(l.t.trips)
	l.Member = facade.New(&l.cfg.Config, func() { coord.Signal(l.poke) })
	if err := l.open(ctx); err != nil {
		l.Cancel()
		return nil, fmt.Errorf("open log: %w", errors.Join(err, l.release()))
	}
	l.start()
	close(l.opened)
	return l, nil
}

// release frees what Open acquired; safe after a partial Open.
func (l *Log) release() error {
	return l.Release(func() error {
		if l.store == nil {
			return nil
		}
		return l.store.Close()
	})
}

func (l *Log) open(ctx context.Context) error {
	err := l.Claim()
	if err != nil {
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
		return fmt.Errorf("%w: %s: start it with --bootstrap to found a federation, or --join @FILE, with an invitation, to enter one",
			ErrNoData, l.cfg.Dir)
	}
	if err = l.listen(); err != nil {
		return err
	}
	isNew := m == nil
	if isNew {
		m, err = l.initialize(ctx)
	}
	if err == nil {
		err = l.openStore()
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
	l.Identify(l.line.federation, l.line.id)
	l.stream.SetGroup(l.line.id)
	return l.openRaft(m)
}

// initialize makes an empty directory a member's.
func (l *Log) initialize(ctx context.Context) (*member, error) {
	l.line = lineage{federation: l.cfg.Federation, id: l.cfg.Federation}
	if len(l.cfg.Join) > 0 {
		q := joinRequest{}
		if l.cfg.Federation != [16]byte{} {
			q.Federation, q.New = hex.EncodeToString(l.cfg.Federation[:]), true
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
	if err := l.Listen(l.t.handshake); err != nil {
		return err
	}
	l.dialer = dialer{&relay.Dialer{Net: l.cfg.Net, Site: l.cfg.Site, Known: l.cfg.Known, Vouch: l.verifyPeer}}
	l.stream = transport.NewStream(transport.ServerAddress(l.cfg.Site, l.Addr()), l.dialer.Dialer, l.Mux,
		l.configuredPeer)
	l.Mux.Handle(relay.KindRaft, func(conn net.Conn, p relay.Preamble) { l.trans.Serve(conn, p) })
	l.Mux.Handle(relay.KindForward, func(conn net.Conn, p relay.Preamble) { l.Calls.Serve(conn, p) })
	l.Mux.Handle(relay.KindJoin, l.serveJoin)
	if _, compares := l.cfg.Machine.(coord.Checkpointed); compares {
		l.Mux.Handle(relay.KindCompare, l.ServeCompare)
	}
	l.Mux.Serve()
	return nil
}

// openStore opens what raft has kept.
func (l *Log) openStore() error {
	d, err := store.Open(l.cfg.Dir)
	if err != nil {
		return err
	}
	if l.cfg.disk != nil {
		d = l.cfg.disk(d)
	}
	l.store = store.New(d, l.synced, l.fail)
	if m, prepares := l.cfg.Machine.(coord.Preparing); prepares {
		l.store.Coming = func(logs []*raft.Log) { prepare(m, logs) }
	}
	if err = checkTerm(l.store, l.cfg.Dir); err != nil {
		return err
	}
	if l.snaps, err = raft.NewFileSnapshotStoreWithLogger(l.cfg.Dir, 2, raftLogger(l.log)); err != nil {
		return fmt.Errorf("open snapshots: %w", err)
	}
	return nil
}

// synced is told that n entries were synced.
func (l *Log) synced(took time.Duration, n int) {
	if l.cfg.Hooks.Store != nil {
		l.cfg.Hooks.Store(took, n)
	}
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
	l.trans = transport.New(l.stream, l.cfg.Site, l.t.rpc, l.t.heartbeat, l.t.quietness(), logger)
	begun := make(chan struct{})
	l.machine = &machine{
		m: l.cfg.Machine, fail: l.fail, begun: begun, onApply: l.tellFollowers,
		onConfig: func() { coord.Signal(l.poke) },
	}
	l.Bind(backend{l}, l.dialer.Dialer, l.t.calls(), &l.machine.position, l.machine.index.Load,
		func() { coord.Signal(l.poke) })
	l.machine.calls = l.Calls
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
		if l.machine.refused != nil {
			err = fmt.Errorf("%w: %w", err, l.machine.refused)
		}
		return fmt.Errorf("start raft in %s: %w", l.cfg.Dir, err)
	}
	l.trans.Attach(l.raft)
	l.bindLeader()
	l.halt = sync.OnceFunc(func() {
		l.leadership.given.end()
		_, _ = l.raft.Shutdown().Error(), l.trans.Close()
	})
	l.store.SetRunning(true)
	close(begun)
	return nil
}

// bindLeader gives the parts that a leader needs what is open.
func (l *Log) bindLeader() {
	ld := l.leadership
	ld.cfg, ld.member, ld.t, ld.log = &l.cfg, l.Member, l.t, l.log
	ld.raft, ld.store, ld.trans, ld.dialer = l.raft, l.store, l.trans, l.dialer
	l.voting = &voterChoice{
		cfg: &l.cfg, member: l.Member, t: l.t, log: l.log, raft: l.raft, trans: l.trans, dialer: l.dialer,
		promote: l.makeVoter,
	}
}

// tellFollowers tells the followers of a commit, if this member leads.
func (l *Log) tellFollowers(e *raft.Log) {
	if l.raft.State() == raft.Leader && l.raft.CurrentTerm() == e.Term {
		l.trans.Committed(e)
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

// start runs the goroutines.
func (l *Log) start() {
	l.Compare(facade.Comparing{
		Members: l.peers, Stop: l.fail, Remedy: remedyDiffers, Every: l.t.compare,
		Timeout: l.t.rpc,
	})
	l.Mux.SetGroup(l.line.id)
	l.Calls.Start()
	for _, run := range []func(context.Context){
		l.watchRaft, l.watchSilence, l.catchUp, l.settleAddress, l.watchForNewerEpoch,
	} {
		l.WG.Go(func() { run(l.Ctx) })
	}
	e := newVoterTracker()
	l.WG.Go(func() { runEvery(l.Ctx, l.t.promote, func() { l.voting.watch(l.Ctx, e) }) })
	h := &handoverTracker{said: relay.Reminder{Every: relay.RemindEvery}}
	l.WG.Go(func() { runEvery(l.Ctx, l.t.promote, func() { l.leadership.leadOrHandOver(l.Ctx, h) }) })
	l.WG.Go(func() { runEvery(l.Ctx, l.t.trips, func() { l.measureTrips(l.Ctx) }) })
	l.WG.Go(func() { runEvery(l.Ctx, l.t.snapshotEvery/20, l.snapshot) })
	l.WG.Go(func() { runEvery(l.Ctx, l.t.stall/6, l.watchWrites) })
}
