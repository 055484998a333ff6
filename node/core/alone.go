package core

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// A site alone (architecture D5): cut off from the quorum it goes on with its
// own users' jobs as far as nobody else can have heard of them. What may have
// been sent waits: only the federation knows who runs it.

// maxAloneTasks is the largest array that waits at home; a larger one waits for
// the quorum.
const maxAloneTasks = 10_000

const (
	// AloneReason is why a job waits at home while its site is alone.
	AloneReason = "the federation is out of reach: waits for room at this site"
	// Unpublished is why a job waits that may not, or cannot, run at this site.
	Unpublished = "no quorum now: kept at this site; it is published, and can start, as soon as there is one"
)

// homeAlone reports whether a job may wait at home while the site is alone.
func (c *Core) homeAlone(js *command.JobSpec) bool {
	if c.drain.Own || c.closing || js.Count > maxAloneTasks || !c.homeOpen(js) || len(c.home.waiting)+int(js.Count) > 10*maxAloneTasks {
		return false
	}
	return c.fitsEmpty(js)
}

// fitsEmpty reports whether some machine would take a task of the job if it
// were idle; but are the handlers that are not asked.
func (c *Core) fitsEmpty(js *command.JobSpec, but ...refusal) bool {
	suits := machineFilter{js: js, but: but}
	return slices.ContainsFunc(c.order, func(name string) bool {
		m := c.machines[name]
		return suits.at(m) && fits(command.Resources(m.Resources), command.Resources{}, js.Need)
	})
}

// queueHome has all tasks of a job wait at home.
func (c *Core) queueHome(js command.JobSpec, fx *Effects) {
	c.keepHome(js, fx)
	for i := range js.Count {
		c.home.waiting = append(c.home.waiting, homeWaiting{js.Num, i})
	}
}

// publishUnstarted gives the federation the home jobs that have not begun, once
// it is in reach again, and those that this site's handlers refuse.
func (c *Core) publishUnstarted(s StateReader, fx *Effects) {
	if c.Alone() || len(c.home.waiting) == 0 {
		return
	}
	kept := c.home.waiting[:0]
	for _, w := range c.home.waiting {
		job := c.home.jobs[w.num]
		switch {
		case job == nil: // moved with an earlier task
		case job.isUntouched(), c.toMove(job, s):
			c.forgetHomeJob(w.num, fx)
			c.pubs.open = append(c.pubs.open, pendingJob{spec: job.Spec, promised: true})
		default:
			kept = append(kept, w)
		}
	}
	if len(kept) < len(c.home.waiting) {
		c.home.stuck = 0 // what was moved may be among them
	}
	c.home.waiting = kept
}

// isUntouched reports whether no task of the job was ever started or ended.
func (j *homeJob) isUntouched() bool {
	return !slices.ContainsFunc(j.Tasks, func(t homeTask) bool { return t.Attempt > 0 || t.State != fsm.Queued })
}

// settledBelow returns the number below which this site will publish no job that
// the federation does not know yet.
func (c *Core) settledBelow() uint64 {
	settled := c.nextJob
	for _, p := range c.pubs.order {
		settled = min(settled, p.jobs[0].spec.Num)
	}
	for num := range c.home.unsure {
		settled = min(settled, num)
	}
	for _, w := range c.home.waiting {
		if w.num < settled && c.home.jobs[w.num] != nil && c.home.jobs[w.num].isUntouched() {
			settled = w.num
		}
	}
	return settled
}
