package own

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/gates"
	"github.com/cloudshare/cloudshare/node/core/usage"
)

// Why explains a job that only this broker knows.
func (o *Jobs) Why(num uint64) (node.Why, bool) {
	r, _, ok := o.Record(num)
	if !ok {
		return node.Why{}, false
	}
	w := node.Why{
		Job: command.JobID{Site: o.site, Num: num}, State: r.counts.JobState().String(),
		Waiting: r.counts[fsm.Queued], Priority: r.Spec.Priority,
	}
	switch before := o.home.WaitingBefore(num); {
	case w.Waiting == 0:
		w.Summary = "none of its tasks waits: " + w.State
		if a := o.after.Find(num); a != nil {
			w.Summary += ", " + a.Reason
		}
		w.Estimate.Unknown = "nothing waits for its turn"
		return w, true
	case o.after.IsHeld(num):
		w.Summary = r.Reason
		w.Estimate.Unknown = "it begins when what it waits for has ended"
		if o.after.Find(num).Awaits() {
			w.Estimate.Unknown = "it begins when its inputs are here"
		}
		return w, true
	case o.home.IsHeld(num):
		w.Summary = gates.ByHand
	case o.home.Find(num) == nil && o.pubs.Find(num).Held:
		w.Summary = o.heldWhy(num)
	case o.home.Find(num) == nil:
		w.Summary = r.Reason
	case o.home.Refuses(o.home.Find(num)):
		w.Summary = "its own site does not run it: " + o.home.Find(num).NoPlace()
	case o.lend.Full() != nil:
		w.Summary = "nothing is started at this site now: " + o.lend.Full().Error()
	case o.usage.Full():
		w.Summary = "nothing is started at this site now: " + usage.ErrUnreported.Error()
	case o.lend.PausesHome():
		w.Summary = "nothing is started at this site now: it is drained for its own users too, leaves, or is in trouble"
	case o.home.Resting() != "":
		w.Summary = "nothing is started at this site now: " + o.home.Resting()
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
