package raftlog

import (
	"slices"

	"github.com/hashicorp/raft"
)

// unfitTimeoutFactor is how much later than others a voter that is not fit stands for
// leader: after two elections of theirs have failed.
const unfitTimeoutFactor = 3

// adjustTimeouts has a follower that is not fit wait longer before it stands for leader, and
// a leader send its heartbeats at the usual pace. A member that does not vote hears of its leader
// less often (transport.Quiet). watch calls it.
func (l *Log) adjustTimeouts() {
	heartbeat, election := l.t.heartbeat, l.t.election
	if l.UnfitWhy() != "" && l.raft.State() != raft.Leader {
		heartbeat, election = unfitTimeoutFactor*heartbeat, unfitTimeoutFactor*election
	}
	if voters := l.voters(); len(voters) > 0 && !slices.Contains(voters, raft.ServerID(l.cfg.Site)) {
		heartbeat = max(heartbeat, l.t.patience())
		election = heartbeat
	}
	err := l.reloadRaft(func(rc *raft.ReloadableConfig) (changed bool) {
		changed = rc.HeartbeatTimeout != heartbeat
		rc.HeartbeatTimeout, rc.ElectionTimeout = heartbeat, election
		return changed
	})
	if err != nil {
		l.log.Warn().Err(err).Msg("raft takes no other timeouts: this broker stands for leader like any other")
	}
}

// reloadRaft changes raft's configuration, one change at a time.
func (l *Log) reloadRaft(change func(*raft.ReloadableConfig) (changed bool)) error {
	l.reloading.Lock()
	defer l.reloading.Unlock()
	rc := l.raft.ReloadableConfig()
	if !change(&rc) {
		return nil
	}
	return l.raft.ReloadConfig(rc)
}
