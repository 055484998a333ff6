package raftlog

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
)

// watchRaft follows raft's state until ctx ends.
func (l *Log) watchRaft(ctx context.Context) {
	seen := make(chan raft.Observation, 64)
	observer := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.RaftState, raft.PeerObservation:
			return true
		}
		return false
	})
	l.raft.RegisterObserver(observer)
	defer l.raft.DeregisterObserver(observer)
	// Half a tick: see sequencer.idle. It also covers observations that raft dropped.
	tick := time.NewTicker(l.t.tick / 2)
	defer tick.Stop()
	var last coord.Status
	for {
		last = l.refresh(last)
		select {
		case <-ctx.Done():
			return
		case <-seen:
		case <-l.poke:
		case now := <-tick.C:
			l.Calls.Tick(now)
			if l.raft.State() == raft.Leader {
				l.Calls.Idle()
			}
		}
	}
}

// refresh acts on what changed since last.
func (l *Log) refresh(last coord.Status) coord.Status {
	now := l.Status()
	l.adjustTimeouts()
	if now.Lead != last.Lead || now.Term != last.Term {
		l.caught.Store(false)
		if _, self := l.leader(); self {
			l.Calls.FirstEntry()
		}
		l.Calls.LeadChanged()
		if l.cfg.Hooks.Lead != nil && now.Lead != last.Lead {
			l.cfg.Hooks.Lead(now.Lead)
		}
		l.log.Info().Str("leader", now.Lead).Uint64("term", now.Term).Msg("leader changed")
	}
	if !reflect.DeepEqual(now, last) {
		l.SignalChanged()
	}
	l.finishJoin()
	return now
}

// finishJoin ends a join when the first configuration has come: from now on the
// group tells where its members are.
func (l *Log) finishJoin() {
	if l.member == nil || l.configuredPeer(l.cfg.Site).None() {
		return
	}
	m := *l.member
	m.Through = nil
	if err := m.save(l.cfg.Dir); err != nil {
		l.log.Warn().Err(err).Msg("the join peers are not forgotten: will try again")
		return
	}
	l.member = nil
}

// catchUp makes one current read after each change of leader: then this member
// has applied what the leader had committed.
func (l *Log) catchUp(ctx context.Context) {
	for {
		changed := l.Calls.NextLead()
		if to, self := l.leader(); !to.None() || self {
			if _, err := l.Sync(ctx); err == nil {
				l.caught.Store(true)
				coord.Signal(l.poke)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// snapshot takes one when many bytes were applied since the last; raft itself
// counts entries only. The trailing log is bounded in bytes the same way.
func (l *Log) snapshot() {
	l.forgetIfHostile()
	grown := l.machine.grown.Load()
	if grown < l.t.snapshotBytes {
		return
	}
	first, err := l.store.FirstIndex()
	entries := max(int64(l.raft.LastIndex()-first), 1)
	if err == nil {
		err = l.reloadRaft(func(rc *raft.ReloadableConfig) (changed bool) {
			rc.TrailingLogs = uint64(min(int64(l.t.trailing), max(l.t.snapshotBytes/max(grown/entries, 1), 64)))
			return true
		})
	}
	if err == nil {
		err = l.raft.Snapshot().Error()
	}
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) && l.Ctx.Err() == nil {
		l.log.Warn().Err(err).Msg("snapshot failed: will try again")
	}
}

// runEvery looks once a period until ctx ends.
func runEvery(ctx context.Context, period time.Duration, look func()) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			look()
		case <-ctx.Done():
			return
		}
	}
}
