package core

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
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

// proposeLosses proposes what the lease tracker found, each once at a time. A broker that is not
// registered has no numbers for commands: it proposes nothing, and the leadership
// goes to another one (fitness.go).
func (c *Core) proposeLosses(v VerdictEvent) {
	if c.incarnation == 0 {
		return
	}
	propose := func(r coord.Renewal, body command.Body) {
		if c.judging[r] {
			return
		}
		c.judging[r] = true
		c.out.add(body, func(command.Result, StateReader, *Effects) { delete(c.judging, r) })
	}
	for _, r := range v.Lost {
		propose(r, &command.SiteLost{Site: r.Site, Incarnation: r.Incarnation, Term: v.Term})
	}
	for _, r := range v.Suspect {
		propose(r, &command.Suspect{Site: r.Site, Incarnation: r.Incarnation, On: true})
	}
	for _, r := range v.Trust {
		propose(r, &command.Suspect{Site: r.Site, Incarnation: r.Incarnation})
	}
}

// RaiseEvent says that this broker leads, and all sites know a newer apply version.
type RaiseEvent struct{ Version uint32 }

func (RaiseEvent) isEvent() {}

// proposeRaise proposes an apply version, one at a time.
func (c *Core) proposeRaise(ev RaiseEvent) {
	if c.incarnation == 0 || c.raising {
		return
	}
	c.raising = true
	c.out.add(&command.Raise{Version: ev.Version}, func(command.Result, StateReader, *Effects) { c.raising = false })
}
