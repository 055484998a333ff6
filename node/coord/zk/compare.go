package zk

import (
	"slices"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// remedyDiffers says how to go on behind a stop: the log is the ensemble's, and
// nothing of it is here.
const remedyDiffers = "then start the broker again: it rebuilds its state from what is in ZooKeeper"

// startComparing answers other members that compare their states, and compares
// this one's.
func (l *Log) startComparing() {
	m, ok := l.cfg.Machine.(coord.Checkpointed)
	if !ok {
		return
	}
	l.Compare(facade.Comparing{
		Members: func() []compare.Member { return l.comparable(m) },
		Stop:    l.fail, Remedy: remedyDiffers, Every: l.t.compare, Timeout: l.t.RPC,
	})
	l.Mux.Handle(relay.KindCompare, l.noteQuestions(m, l.ServeCompare))
}

// comparable returns the members by the tree, at the addresses that the state has of
// them. Those that stand for leader are the voters.
func (l *Log) comparable(m coord.Checkpointed) []compare.Member {
	s := l.group.status()
	var out []compare.Member
	for _, site := range s.Members {
		_, voter := slices.BinarySearch(s.Voters, site)
		out = append(out, compare.Member{Site: site, Addr: m.PeerAddress(site), Voter: voter})
	}
	return out
}
