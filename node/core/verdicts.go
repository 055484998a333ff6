package core

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// Verdicts of one look.
type Verdicts struct {
	Term    uint64
	Lost    []coord.Renewal // silent for too long: propose their loss
	Say     []coord.Renewal // of these, those that the log is told of now
	Suspect []coord.Renewal // rest their offers
	Gone    []coord.Renewal // of these, those that cannot be reached, as was just found out
	Trust   []coord.Renewal // wake their offers
}

// VerdictEvent says that this broker leads and judges other sites.
type VerdictEvent struct{ Verdicts }

func (VerdictEvent) isEvent() {}

// RaiseEvent says that this broker leads, and all sites know a newer apply version.
type RaiseEvent struct{ Version uint32 }

func (RaiseEvent) isEvent() {}

// GossipKeyEvent says that this broker leads in a term, and that gossip is due another key.
type GossipKeyEvent command.GossipKey

func (GossipKeyEvent) isEvent() {}

// changes are those of the federation that this broker has proposed and that are being ordered: a leader's verdicts, a
// newer apply version, a key of gossip, and what people want of the federation. A broker that is not registered has no
// numbers for commands: it judges nobody, raises nothing and makes no keys, and the leadership goes to another one
// (fitness.go).
type changes struct {
	out     *turn.Outbox
	judging map[coord.Renewal]bool // verdicts being ordered
	raising bool                   // a newer apply version is being ordered
	keying  bool                   // a key of gossip is being ordered
	orders  int                    // that people wait for
}

func newChanges(out *turn.Outbox) changes {
	return changes{out: out, judging: map[coord.Renewal]bool{}}
}

// proposeLosses proposes what the lease tracker found, each once at a time.
func (g *changes) proposeLosses(v VerdictEvent) {
	for _, r := range v.Lost {
		g.propose(r, &command.SiteLost{Site: r.Site, Incarnation: r.Incarnation, Term: v.Term})
	}
	for _, r := range v.Suspect {
		g.propose(r, &command.Suspect{Site: r.Site, Incarnation: r.Incarnation, On: true})
	}
	for _, r := range v.Trust {
		g.propose(r, &command.Suspect{Site: r.Site, Incarnation: r.Incarnation})
	}
}

func (g *changes) propose(r coord.Renewal, verdict command.Body) {
	if g.judging[r] {
		return
	}
	g.judging[r] = true
	g.out.Add(verdict, func(command.Result, StateReader, *Effects) { delete(g.judging, r) })
}

// proposeRaise proposes an apply version, one at a time.
func (g *changes) proposeRaise(ev RaiseEvent) {
	if g.raising {
		return
	}
	g.raising = true
	g.out.Add(&command.Raise{Version: ev.Version}, func(command.Result, StateReader, *Effects) { g.raising = false })
}

// proposeGossipKey proposes a key of gossip, one at a time. What is refused was made in an older term, or too late:
// the leader looks again.
func (g *changes) proposeGossipKey(ev GossipKeyEvent) {
	if g.keying {
		return
	}
	g.keying = true
	key := command.GossipKey(ev)
	g.out.Add(&key, func(command.Result, StateReader, *Effects) { g.keying = false })
}

// expelled forgets the verdicts of an incarnation that is lost.
func (g *changes) expelled() { clear(g.judging) }

// MaxOrders bounds what people want of the federation that waits for the quorum.
const MaxOrders = 64

// Order has a command of this site ordered for somebody who waits for its result; false: too many wait already.
// done must have room for it.
func (c *Core) Order(b command.Body, done chan<- command.Result) bool {
	return c.changes.order(b, done)
}

func (g *changes) order(b command.Body, done chan<- command.Result) bool {
	if g.orders >= MaxOrders {
		return false
	}
	g.orders++
	g.out.Add(b, func(r command.Result, _ StateReader, _ *Effects) {
		g.orders--
		done <- r
	})
	return true
}
