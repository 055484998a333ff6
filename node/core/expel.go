package core

import (
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// checkExpelled notices that the federation has given this incarnation up: its
// lease ran out as the leader saw it. Nothing of the federation is started or
// reported any more until the site has registered again.
func (c *Core) checkExpelled(s StateReader) {
	state, incarnation := s.SiteState(c.site)
	if incarnation != c.incarnation || c.gone || state == fsm.Alive || state == fsm.Suspected {
		return
	}
	c.incarnation, c.expelled = 0, true
	clear(c.judging)
	c.pledges.clear()
	c.offers, c.closed = offerBook{}, closureBook{}
	c.ends = c.ends[:0] // the registration settles them
	c.started = c.started[:0]
}

// expel ends every attempt for another site, and then registers again with what
// is left and the state kept for it: this site's own tasks, and those with a
// bound that has not passed. In a new epoch that is only what the state knows.
func (c *Core) expel(s StateReader, fx *Effects) {
	if !c.expelled {
		return
	}
	dead := true
	for _, a := range c.attempts {
		if a.Home || (a.Bounded || a.isOwnedBy(c.site)) && !c.unknownToState(a, s) {
			continue
		}
		a.fenced = true
		if a.ended != nil {
			c.drop(a, fx)
			continue
		}
		dead = false
		c.stop(a, "this site lost touch with the federation", fx)
	}
	if !dead {
		return
	}
	c.expelled = false
	c.finishEpoch(fx)
	c.resumeEnds(fx)
	held, lost := c.Registration()
	fx.Register = &Registration{Held: held, Lost: lost}
}

// isOwnedBy reports whether an attempt's task belongs to the site itself.
func (a *attempt) isOwnedBy(site string) bool { return ownerOf(a.ID) == site }

func ownerOf(id executor.ID) string {
	job, err := command.ParseJobID(id.Job)
	if err != nil {
		return ""
	}
	return job.Site
}

// resumeEnds reports ends again that the state may not have taken.
func (c *Core) resumeEnds(fx *Effects) {
	for id, a := range c.attempts {
		if !a.Home && a.ended != nil {
			c.queueEndReport(id, a, fx)
		}
	}
}
