package core

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// checkExpelled notices that the federation has given this incarnation up: its
// lease ran out as the leader saw it. Nothing of the federation is started or
// reported any more until the site has registered again.
func (c *Core) checkExpelled(s StateReader, fx *Effects) {
	state, incarnation := s.SiteState(c.site)
	switch {
	case incarnation != c.incarnation || c.gone:
		return
	case state == fsm.Alive || state == fsm.Suspected:
		c.standing.note(c.site, s)
		return
	case state == fsm.SiteGone && c.lease.incarnation == incarnation && c.standing.silent(c.site, s):
		fx.LostBefore = c.lease.until
	}
	c.incarnation, c.expelled = 0, true
	c.changes.expelled()
	c.bounds.Clear()
	c.ahead.Clear()
	c.lend.Expelled()
	c.reports.Clear() // the registration settles them
}

// standing is what the state last said of this site while it was present.
type standing struct {
	epoch uint64
	key   signature.Key
}

func (x *standing) note(site string, s StateReader) {
	m, _ := s.Member(site)
	x.epoch, x.key = s.Epoch(), m.Key
}

// silent reports whether a loss can only mean that the leader heard nothing of this site for too long. A ban, a key
// that its owner or the electors have replaced and another epoch park a site, too, whatever its lease.
func (x *standing) silent(site string, s StateReader) bool {
	m, _ := s.Member(site)
	return !m.Banned && m.Key == x.key && s.Epoch() == x.epoch
}

// expel ends every attempt for another site, and then registers again with what
// is left and the state kept for it: this site's own tasks, and those with a
// bound that has not passed. In a new epoch that is only what the state knows.
func (c *Core) expel(s StateReader, fx *Effects) {
	if !c.expelled {
		return
	}
	dead := true
	for _, a := range c.attempts.All() {
		if a.Home || (a.Bounded || a.IsOwnedBy(c.site)) && !c.entering.isUnknown(a, s) {
			continue
		}
		a.Fenced = true
		if a.Ended != nil || a.Collecting {
			c.attempts.Drop(a, fx)
			continue
		}
		c.stopAttempt(a, "this site lost touch with the federation", fx)
		dead = dead && c.attempts.Find(a.ID) == nil
	}
	if !dead {
		return
	}
	c.expelled = false
	c.entering.finish(fx)
	c.resumeEnds(fx)
	held, lost := c.reports.Registration()
	fx.Register = &Registration{Held: held, Lost: lost}
}

// resumeEnds reports ends again that the state may not have taken.
func (c *Core) resumeEnds(fx *Effects) {
	for id, a := range c.attempts.All() {
		if !a.Home && a.Ended != nil {
			c.queueEndReport(id, a, fx)
		}
	}
}
