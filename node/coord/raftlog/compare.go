package raftlog

import (
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
)

// remedyDiffers says how to go on behind a stop. The log of entries is kept: a
// member that forgot what it has acknowledged must not vote under its name.
const remedyDiffers = "then start the broker again: it rebuilds its state from its own log, and compares it; " +
	"if it stops again, move its data directory away, too, and join with an empty one under a new name (cloudshare broker --join HOST:PORT --site NAME)"

var _ coord.Comparing = (*Log)(nil)

// peers returns the members by the group's configuration.
func (l *Log) peers() []compare.Member {
	var out []compare.Member
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		out = append(out, compare.Member{
			Site: string(s.ID), Addr: transport.HostPort(s.Address),
			Voter: s.Suffrage == raft.Voter,
		})
	}
	return out
}
