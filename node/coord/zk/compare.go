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

// comparable returns the members, at the addresses that the state has of them, and which of them vote. Where the state
// says who may lead, those are the voters, whatever the tree says: else whoever writes there could make a majority.
func (l *Log) comparable(m coord.Checkpointed) []compare.Member {
	s, electors := l.group.status(), l.orderers()
	sites := slices.Clone(s.Members)
	for site := range electors {
		if !slices.Contains(sites, site) {
			sites = append(sites, site)
		}
	}
	slices.Sort(sites)
	var out []compare.Member
	for _, site := range sites {
		_, voter := slices.BinarySearch(s.Voters, site)
		if electors != nil {
			_, voter = electors[site]
		}
		out = append(out, compare.Member{Site: site, Addr: m.PeerAddress(site), Voter: voter})
	}
	return out
}
