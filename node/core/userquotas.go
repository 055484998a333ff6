package core

import (
	"iter"
	"math"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/quotas"
)

const (
	// looksPerTick is how many open jobs are looked at in a tick: 1000 a second. Ten times as many took 1 % of what a
	// broker uses of its processors that takes all the submissions that it can.
	looksPerTick = 100
	// useTicks is after how many ticks users' use is written down; a crash forgets that much of it.
	useTicks = 600
)

// UserLimitsEvent says that the operator changes the limits of a user, or of everybody. Done is called once that is
// durable, or cannot be.
type UserLimitsEvent struct {
	User   string
	Change node.UserLimitsChange
	Done   func(error)
}

func (UserLimitsEvent) isEvent() {}

func (c *Core) setUserLimits(ev UserLimitsEvent, fx *Effects) {
	err := c.quotas.Set(ev.User, &ev.Change)
	if err == nil {
		c.quotas.WriteUser(ev.User, &fx.Writes)
	}
	fx.Replies = append(fx.Replies, func() { ev.Done(err) })
}

// Users returns what the users of this site use of their quotas.
func (c *Core) Users() []node.UserUse { return c.quotas.List(c.now.Wall.UnixMilli()) }

// claimOf returns what a job takes of its user's quotas.
func claimOf(js *command.JobSpec) quotas.Claim {
	return quotas.Claim{
		Tasks: uint64(js.Count), MilliCPU: uint64(max(js.Need.MilliCPU, 0)), Bytes: js.Bytes(), Gated: js.Gated,
	}
}

// countOpenJobs counts the users' jobs again, wherever they are: what was counted since the start of the broker may not
// be all, and what ended meanwhile was not seen.
func (c *Core) countOpenJobs(s StateReader) {
	if c.whose.Len() == 0 {
		return
	}
	c.quotas.Restart()
	c.countJournaled()
	for v := range s.OwnJobs(c.site) {
		if !v.State.Ended() && !c.isOwn(v.ID.Num) {
			c.countOpenJob(&v.Spec)
		}
	}
	c.lookAtUsers(math.MaxInt, s) // tasks of these that have ended
}

// countJournaled counts the users' jobs that this site's journal has: those at home and on their way to the queue. A
// broker that has not registered yet knows of no others, and takes jobs.
func (c *Core) countJournaled() {
	for _, nums := range []iter.Seq[uint64]{
		slices.Values(c.home.Numbers()), c.pubs.Numbers(), slices.Values(c.pubs.OpenNumbers()),
	} {
		for num := range nums {
			if js, ok := c.own.Spec(num); ok {
				c.countOpenJob(&js)
			}
		}
	}
	for num := range c.after.HeldNumbers() {
		j := c.after.Find(num)
		c.quotas.Wait(j.User, claimOf(&j.Spec))
	}
}

func (c *Core) countOpenJob(js *command.JobSpec) {
	p := c.pubs.Find(js.Num)
	c.countTaken(js, c.whose.UserOf(js.Num), p != nil && p.Held)
}

// isOwn reports whether a job is at home, held, or on its way to the queue.
func (c *Core) isOwn(num uint64) bool {
	return c.home.Find(num) != nil || c.pubs.Find(num) != nil || c.after.Find(num) != nil
}

// lookAtUsers follows what up to n of the users' jobs run.
func (c *Core) lookAtUsers(n int, s StateReader) {
	at := quotas.Moment{Now: c.now.Boot / 1e6, Wall: c.now.Wall.UnixMilli()}
	c.quotas.Look(n, at, func(num uint64) (fsm.Counts, bool) {
		if h := c.home.Find(num); h != nil {
			return h.Counts(), true
		}
		if p := c.pubs.Find(num); p != nil {
			if p.Spec.Gated {
				return fsm.Counts{fsm.Held: p.Spec.Count}, true
			}
			return fsm.Counts{fsm.Queued: p.Spec.Count}, true
		}
		return s.TaskCounts(command.JobID{Site: c.site, Num: num})
	})
}

// writeUse has the users' use written now and then.
func (c *Core) writeUse(fx *Effects) {
	if c.ticks%useTicks == 0 {
		c.quotas.Decay(c.now.Wall.UnixMilli())
		c.quotas.Write(&fx.Writes)
	}
}
