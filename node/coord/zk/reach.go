package zk

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// reach is what this member knows of whether others reach its peer port. Nobody dials
// an address before it stands in /lead: with a wrong one this member would lead a group
// that cannot call it, for as long as its session lives. So who is not reached should
// not lead (unfitWhy), and says so.
type reach struct {
	open  atomic.Int64 // calls and feeds of other members that last
	heard atomic.Int64 // when another member's connection began last (sinceStart)

	// What watchRoles has seen; it owns it.
	leads bool
	since time.Duration  // since when voters are connected to the ensemble and none to this member
	why   string         // why this member should not lead; "" = it is reached, as far as it knows
	said  relay.Reminder // of why
}

// countConnections counts the connections of other members, for as long as they last.
func (l *Log) countConnections(serve func(net.Conn, relay.Preamble)) func(net.Conn, relay.Preamble) {
	return func(conn net.Conn, p relay.Preamble) {
		l.reach.open.Add(1)
		defer l.reach.open.Add(-1)
		l.reach.heard.Store(int64(sinceStart()))
		serve(conn, p)
	}
}

// noteQuestions is countConnections for short questions. They come to the address that the state has,
// which may be one of an earlier start.
func (l *Log) noteQuestions(m coord.Checkpointed, serve func(net.Conn, relay.Preamble)) func(net.Conn, relay.Preamble) {
	return func(conn net.Conn, p relay.Preamble) {
		if m.PeerAddress(l.cfg.Site) == l.Addr() {
			l.reach.heard.Store(int64(sinceStart()))
		}
		serve(conn, p)
	}
}

// updateReach looks whether anybody reaches this member. All voters call the leader, and
// ask each other for their states now and then.
func (l *Log) updateReach() {
	x, now := &l.reach, sinceStart()
	leads := l.leaderTerm.Load() != nil
	if leads != x.leads {
		x.leads, x.since = leads, now
	}
	heard := time.Duration(x.heard.Load())
	if x.open.Load() > 0 {
		heard = now
	}
	if x.why != "" && heard > x.since {
		x.why = ""
		l.log.Info().Str("peer", l.Addr()).Msg("other members reach this one's peer address")
	}
	patience := l.unreachedAfter(leads)
	if _, present := l.group.otherVoters(l.cfg.Site); present == 0 || patience == 0 || x.since == 0 {
		x.since = now
	}
	x.since = max(x.since, heard)
	if x.why == "" && now-x.since > patience {
		x.why = fmt.Sprintf("no other member reaches its peer address %s, though others are connected to the ensemble: "+
			"correct its `advertise` or `peer`, or open the way there", l.Addr())
		x.said.Reset()
	}
	if x.why != "" && x.said.Due("", time.Now()) {
		l.log.Warn().Str("because", x.why).Msg("this member should not lead: calls to it would wait")
	}
}

// unreachedAfter returns how long nobody has to come before this member takes it that
// nobody can; 0: nobody need come. The ephemeral of a voter that has ended lasts for
// a session.
func (l *Log) unreachedAfter(leads bool) time.Duration {
	m, compares := l.cfg.Machine.(coord.Checkpointed)
	switch {
	case leads:
		return max(2*l.cfg.session(), 2*l.t.RPC)
	case !compares || !l.group.isVoter(l.cfg.Site) || m.PeerAddress(l.cfg.Site) != l.Addr():
		return 0
	}
	return compare.Silence(l.t.compare, len(l.group.status().Voters))
}

// unansweredLeader is a leader that does not answer at its address, as runReceiver finds it; one
// goroutine uses it.
type unansweredLeader struct {
	to    relay.Peer
	since time.Time // zero = it answers
	said  relay.Reminder
}

// record says, seldom, that the leader is not reached.
func (d *unansweredLeader) record(l *Log, to relay.Peer, err error) {
	now := time.Now()
	if err == nil || d.to != to {
		*d = unansweredLeader{to: to}
	}
	switch {
	case err == nil:
		return
	case d.since.IsZero():
		d.since = now
	}
	if now.Sub(d.since) < l.t.poll || !d.said.Due("", now) {
		return
	}
	l.log.Warn().Err(err).Str("leader", to.Site).Str("peer", to.Addr).Msg("the leader is not reached, calls wait for it or for another one: " +
		"start it, correct its `advertise` or `peer`, or open the way there")
}
