package raftlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
)

// raft's follower looks whether its leader is silent at random moments, one to two heartbeat timeouts apart, so it
// finds out one to three timeouts after the last word. And it grants no pre-vote before: a majority must have
// looked, so of five voters three, some 2.2 timeouts on average. Here it is made to look soon behind the timeout, at
// a moment of its own, so that rarely two stand at once.

// nudgeBy is by how much raft's heartbeat timeout is raised for a moment: raft looks when it is lowered.
const nudgeBy = time.Millisecond

// watchSilence has raft look at its leader's silence soon after the timeout, until ctx ends.
func (l *Log) watchSilence(ctx context.Context) {
	if l.t.spread == 0 {
		return
	}
	patience := l.silencePatience()
	for wait := patience; ; {
		due := time.Now().Add(wait)
		if coord.Sleep(ctx, wait) != nil {
			return
		}
		switch left := l.silenceLeft(patience); {
		case left > 0:
			wait = left
		case time.Since(due) > l.t.spread/4:
			wait = l.t.spread // this member was starved itself: what was sent to it meanwhile is read first
		default:
			l.lookAtSilence()
			patience = l.silencePatience()
			wait = patience
		}
	}
}

// silencePatience draws after how long a silence raft looks next.
func (l *Log) silencePatience() time.Duration {
	return l.raft.ReloadableConfig().HeartbeatTimeout + rand.N(l.t.spread)
}

// silenceLeft returns for how much longer the leader may be silent; 0 = it has been for too long, by this member.
func (l *Log) silenceLeft(patience time.Duration) time.Duration {
	if leader, self := l.leader(); self || leader.None() || l.raft.State() != raft.Follower {
		return patience
	}
	return max(0, patience-time.Since(l.raft.LastContact()))
}

// lookAtSilence has raft's follower compare its last contact with the timeout now. It decides as ever.
func (l *Log) lookAtSilence() {
	l.reloading.Lock()
	defer l.reloading.Unlock()
	rc := l.raft.ReloadableConfig()
	raised := rc
	raised.HeartbeatTimeout += nudgeBy
	raised.ElectionTimeout += nudgeBy
	if err := errors.Join(l.raft.ReloadConfig(raised), l.raft.ReloadConfig(rc)); err != nil {
		l.log.Debug().Err(err).Msg("raft looks for its leader at its own time")
	}
}
