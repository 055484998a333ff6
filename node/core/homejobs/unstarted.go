package homejobs

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// maxWaitingTasks is the largest array that waits at home while the site is alone; a
// larger one waits for the quorum.
const maxWaitingTasks = 10_000

// HasRoom reports whether a job's tasks may wait at home, and some machine could take them.
func (b *Book) HasRoom(js *command.JobSpec) bool {
	return js.Count <= maxWaitingTasks && js.Allows(b.site) &&
		len(b.waiting)+int(js.Count) <= 10*maxWaitingTasks && b.machines.FitsEmpty(js)
}

// TakeUnstarted gives up the jobs that have not begun, and those that this site's handlers
// refuse, or handed back before all machines came to rest: they are for the federation.
func (b *Book) TakeUnstarted(s turn.StateReader, fx *turn.Effects) (jobs []command.JobSpec) {
	kept, stays := b.waiting[:0], uint64(0) // the job that was last found to stay
	again := false
	for _, w := range b.waiting {
		job := b.jobs[w.num]
		switch {
		case job == nil: // moved with an earlier task
			again = true
			continue
		case w.num != stays:
			moves, failed := b.toMove(job, s)
			again = again || moves || failed
			if moves {
				b.Forget(w.num, fx)
				jobs = append(jobs, job.Spec)
				continue
			}
		}
		kept, stays = append(kept, w), w.num
	}
	if b.waiting = kept; again { // not before: it sorts what waits
		b.unstick() // what was moved, or has failed, may be among those that were passed over
	}
	return jobs
}

// isUntouched reports whether no task of the job was ever started or ended.
func (j *Job) isUntouched() bool {
	return !slices.ContainsFunc(j.Tasks, func(t Task) bool { return t.Attempt > 0 || t.State != fsm.Queued })
}

// SettledBelow returns the least number, below the given one, of a job that may still be
// published.
func (b *Book) SettledBelow(settled uint64) uint64 {
	for num := range b.unsure {
		settled = min(settled, num)
	}
	for num := range b.byHand {
		if num < settled && b.jobs[num].isUntouched() {
			settled = num
		}
	}
	for _, w := range b.waiting {
		if w.num < settled && b.jobs[w.num] != nil && b.jobs[w.num].isUntouched() {
			settled = w.num
		}
	}
	return settled
}
