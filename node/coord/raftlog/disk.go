package raftlog

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// A leader whose disk hangs without an error keeps the leadership: its heartbeats need
// no disk. raft cannot hand over either, for its main goroutine is the one that
// waits. So the writes are watched from outside: after timing.stall the leader
// falls silent and tells the follower that has most to stand for election;
// after timing.hang the member fails, lead or not.

// watchWrites looks at the writes under way at every member.
func (l *Log) watchWrites() {
	switch what, took := l.store.Oldest(time.Now()); {
	case took > l.t.hang:
		l.fail(fmt.Errorf("%s to %s: %w for %v: check the disk, then start the broker again",
			what, l.cfg.Dir, ErrStalled, took.Round(time.Millisecond)))
	case took > l.t.stall:
		l.leadership.stepDownStalled(what, took)
	default:
		l.trans.SetMuted(false)
	}
}

// stepDownStalled gives the leadership away without raft's main goroutine. A lone voter keeps
// it: there is nobody to take it.
func (ld *leadership) stepDownStalled(what string, took time.Duration) {
	if ld.raft.State() != raft.Leader {
		return
	}
	successor, addr := ld.trans.MostCompleteVoter(votersOf(ld.raft))
	if successor == "" || !ld.trans.SetMuted(true) {
		return
	}
	ld.log.Warn().Str("operation", what).Dur("took", took).Str("to", string(successor)).
		Msg("the disk hangs: handing over the leadership")
	ld.requestElection(successor, addr)
}

// requestElection has a voter stand for leader now, without raft's main goroutine.
func (ld *leadership) requestElection(successor raft.ServerID, addr raft.ServerAddress) {
	ld.trans.RequestElection(successor, addr, func(err error) {
		ld.log.Debug().Err(err).Msg("the successor was not told: the others notice it if this leader is silent")
	})
}
