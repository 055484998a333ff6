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
	Trust   []coord.Renewal // wake their offers
}

// VerdictEvent says that this broker leads and judges other sites.
type VerdictEvent struct{ Verdicts }

func (VerdictEvent) isEvent() {}

// RaiseEvent says that this broker leads, and all sites know a newer apply version.
type RaiseEvent struct{ Version uint32 }

func (RaiseEvent) isEvent() {}

// changes are those of the federation that this broker has proposed and that are being
// ordered: a leader's verdicts, a newer apply version, and parameters. A broker that is not
// registered has no numbers for commands: it judges nobody and raises nothing, and the
// leadership goes to another one (fitness.go).
type changes struct {
	out      *turn.Outbox
	judging  map[coord.Renewal]bool // verdicts being ordered
	raising  bool                   // a newer apply version is being ordered
	settings int                    // changes of parameters that are being ordered
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

// expelled forgets the verdicts of an incarnation that is lost.
func (g *changes) expelled() { clear(g.judging) }

// MaxSettings bounds the changes of parameters that wait for the quorum.
const MaxSettings = 64

// Set has parameters ordered; false: too many changes wait already.
func (c *Core) Set(p command.Params, done chan<- command.Code) bool { return c.changes.set(p, done) }

func (g *changes) set(p command.Params, done chan<- command.Code) bool {
	if g.settings >= MaxSettings {
		return false
	}
	g.settings++
	g.out.Add(&command.SetParams{Params: p}, func(r command.Result, _ StateReader, _ *Effects) {
		g.settings--
		done <- r.Code
	})
	return true
}
