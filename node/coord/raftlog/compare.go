package raftlog

import (
	"context"
	"net"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// remedyDiffers says how to go on behind a stop. The log of entries is kept: a
// member that forgot what it has acknowledged must not vote under its name.
const remedyDiffers = "then start the broker again: it makes its state anew from its own log, and compares it; " +
	"if it stops again, move its data directory away, too, and join with an empty one under a new name (cloudshare broker --join HOST:PORT --site NAME)"

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
		Site: l.cfg.Site, Machine: m, Members: l.peers, Dial: l.dialCompare, Refuse: l.mux.Refuse, Stop: l.fail,
		Dir: l.cfg.Evidence, Remedy: remedyDiffers, Every: l.t.compare, Timeout: l.t.rpc, Log: l.log,
	})
	l.wg.Go(func() { l.checker.Run(l.ctx) })
}

// peers are the members by the group's configuration.
func (l *Log) peers() []compare.Member {
	var out []compare.Member
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		out = append(out, compare.Member{Site: string(s.ID), Addr: dialed(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	return out
}

// dialCompare dials where the group has a member, and nowhere else: gossip's word,
// which may be a stranger's, must not bring hashes that stop this member.
func (l *Log) dialCompare(ctx context.Context, m compare.Member) (net.Conn, error) {
	d := relay.Dialer{Net: l.cfg.net, Site: l.cfg.Site}
	return d.Dial(ctx, relay.Peer{Site: m.Site, Addr: m.Addr}, relay.KindCompare, l.line.id)
}
