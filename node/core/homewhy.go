package core

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// HomeWhy explains a job that only this broker knows.
func (c *Core) HomeWhy(num uint64) (node.Why, bool) {
	r, _, ok := c.OwnRecord(num)
	if !ok {
		return node.Why{}, false
	}
	w := node.Why{Job: command.JobID{Site: c.site, Num: num}, State: r.counts.JobState().String(), Waiting: r.counts[fsm.Queued]}
	switch before := c.homeBefore(num); {
	case w.Waiting == 0:
		w.Summary = "none of its tasks waits: " + w.State
		w.Estimate.Unknown = "nothing waits for its turn"
		return w, true
	case c.home.jobs[num] == nil:
		w.Summary = c.pendingReason(c.pubs.find(num))
	case c.homeRefuses(c.home.jobs[num]):
		w.Summary = "its own site does not run it: " + c.home.jobs[num].noPlace()
	case c.full != nil:
		w.Summary = "nothing is started at this site now: " + c.full.Error()
	case c.usage.full():
		w.Summary = "nothing is started at this site now: " + errUnreported.Error()
	case c.homePaused():
		w.Summary = "nothing is started at this site now: it is drained for its own users too, leaves, or is in trouble"
	default:
		tasks := "tasks"
		if before == 1 {
			tasks = "task"
		}
		w.Summary = fmt.Sprintf("waits for room at its own site, outside the federation's queue, behind %d %s", before, tasks)
	}
	w.Estimate.Unknown = "the job is not in the federation's queue"
	return w, true
}

// homeBefore counts the home tasks that wait before a job's first one.
func (c *Core) homeBefore(num uint64) int {
	return max(0, slices.IndexFunc(c.home.waiting, func(w homeWaiting) bool { return w.num == num }))
}

// ClosedWhy returns why the site offers nothing, and what its broker knows beyond that,
// in words; "" if there is no more to say.
func (c *Core) ClosedWhy() (why command.Closure, words string) {
	switch why = c.closure(); why {
	case command.ClosedDisk:
		return why, c.full.Error()
	case command.ClosedTrouble:
		return why, "machine " + c.troubles.Of("", c.now.Boot)
	default:
		return why, ""
	}
}

// Outlook is what would become of a job at its own site, were it submitted now.
type Outlook struct {
	Alone  bool // the site has lost touch with the quorum
	Waits  bool // alone, it would wait at home
	Starts bool // there is room at home, and nothing waits there
	Idle   bool // nothing of the site is on its way to the federation
}

// Outlook looks ahead for a job, and takes nothing.
func (c *Core) Outlook(js *command.JobSpec) Outlook {
	return Outlook{
		Alone: c.Alone(), Waits: c.homeAlone(js), Idle: c.pubs.empty(),
		Starts: c.homeOpen(js) && len(c.home.waiting) == 0 && !c.homePaused() && c.place(js) != nil,
	}
}
