package zk

import (
	"context"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
)

// The leader is one of the rivals: it sees what others propose before it is ordered, and orders its own calls among
// them. So what a member gains by that is bounded by its turn, and all have their turns, by name, as on Raft.

// turns is what watchRoles has seen; it owns it.
type turns struct {
	led      time.Duration // since when this member leads (sinceStart); 0 = it does not
	attempts facade.Attempts

	last   string        // who led last, "" = not known
	vacant time.Duration // since when nobody leads; 0 = somebody does
}

// handOverByTurn gives the leadership away once it has lasted a turn and another voter is there that would lead.
func (l *Log) handOverByTurn(ctx context.Context) {
	x, now := &l.turns, sinceStart()
	r := l.leaderTerm.Load()
	if r == nil || !r.isOpen() {
		x.led = 0
		return
	}
	if x.led == 0 {
		x.led = now
	}
	if now-x.led < l.t.turn || len(l.inTurn(l.cfg.Site)) == 0 || !x.attempts.Due(time.Now()) {
		return
	}
	x.attempts.Note(time.Now())
	l.log.Info().Dur("led", now-x.led).Msg("this leader's turn is over: handing over")
	if l.cfg.Hooks.HandOver != nil {
		l.cfg.Hooks.HandOver("turn")
	}
	l.handOver(ctx)
}

// inTurn returns the voters beside a site that would lead now, in the order of their names, those behind it first.
func (l *Log) inTurn(site string) []string {
	all := slices.DeleteFunc(l.group.fitVoters(), func(s string) bool {
		return s == site || !coord.MayVote(l.cfg.Machine, s)
	})
	at, _ := slices.BinarySearch(all, site)
	return slices.Concat(all[at:], all[:at])
}

// noteLeader notes who leads, for whose turn is next.
func (l *Log) noteLeader(site string, held bool) {
	x := &l.turns
	switch {
	case held && site != "":
		x.last, x.vacant = site, 0
	case !held && x.vacant == 0:
		x.vacant = sinceStart()
	}
}

// awaitsTurn reports whether the leadership, which nobody has, is left to those whose turn is before this member's,
// each for a moment.
func (l *Log) awaitsTurn() bool {
	x := &l.turns
	if x.last == "" || x.vacant == 0 {
		return false
	}
	before := max(0, slices.Index(l.inTurn(x.last), l.cfg.Site))
	left := time.Duration(before)*l.cfg.session()/8 - (sinceStart() - x.vacant)
	if left > 0 {
		time.AfterFunc(left, func() { coord.Signal(l.kick) })
	}
	return left > 0
}
