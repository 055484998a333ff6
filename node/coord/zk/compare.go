package zk

import (
	"context"
	"net"
	"slices"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// remedyDiffers says how to go on behind a stop: the log is the ensemble's, and
// nothing of it is here.
const remedyDiffers = "then start the broker again: it makes its state anew from what is in ZooKeeper"

var _ coord.Comparing = (*Log)(nil)

// Compared implements coord.Comparing.
func (l *Log) Compared() coord.Comparison { return l.checker.Compared() }

// startComparing answers other members that compare their states, and compares
// this one's.
func (l *Log) startComparing() {
	m, ok := l.cfg.Machine.(coord.Checkpointed)
	if !ok {
		return
	}
	l.checker = compare.New(compare.Config{
		Site: l.cfg.Site, Machine: m, Members: func() []compare.Member { return l.comparable(m) },
		Dial: l.dialCompare, Refuse: l.mux.Refuse, Stop: l.fail,
		Dir: l.cfg.Evidence, Remedy: remedyDiffers, Every: l.t.compare, Timeout: l.t.RPC, Log: l.log,
	})
	l.mux.Handle(relay.KindCompare, l.checker.Serve)
	l.wg.Go(func() { l.checker.Run(l.ctx) })
}

// comparable are the members by the tree, at the addresses that the state has of
// them. Those that stand for lead are the voters.
func (l *Log) comparable(m coord.Checkpointed) []compare.Member {
	s := l.group.status()
	var out []compare.Member
	for _, site := range s.Members {
		_, voter := slices.BinarySearch(s.Voters, site)
		out = append(out, compare.Member{Site: site, Addr: m.PeerAddress(site), Voter: voter})
	}
	return out
}

func (l *Log) dialCompare(ctx context.Context, m compare.Member) (net.Conn, error) {
	return l.peers.Dial(ctx, relay.Peer{Site: m.Site, Addr: m.Addr}, relay.KindCompare, l.line)
}
