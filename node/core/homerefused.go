package core

import (
	"errors"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// A handler may refuse a home task for good: its site's policy forbids the image,
// say. Another handler of the site is asked then. If there is none, the job goes to
// the federation, as a whole, where other sites may take it; if none of those could
// either, or some of its tasks run here, the task has failed.

// refusal is a handler's word that it will never run a job's tasks.
type refusal struct{ handler, why string }

// refused notes a handler's word.
func (j *homeJob) refused(by, why string) {
	if !j.refusedBy(by) {
		j.refusals = append(j.refusals, refusal{by, why})
	}
}

func (j *homeJob) refusedBy(handler string) bool {
	return slices.ContainsFunc(j.refusals, func(r refusal) bool { return r.handler == handler })
}

// homeRefuses reports whether handlers refuse a job, and no other of the site could
// ever run it.
func (c *Core) homeRefuses(job *homeJob) bool {
	return len(job.refusals) > 0 && !c.fitsEmpty(&job.Spec, job.refusals...)
}

// noPlace says why no machine of the site could ever take the job's tasks.
func (j *homeJob) noPlace() string {
	if len(j.refusals) > 0 {
		return j.refusals[0].why
	}
	return tooSmall
}

// everRan reports whether some task of the job may have run, in an earlier life of
// the broker too: what was only handed back has counted as no failure and no loss.
func (j *homeJob) everRan() bool {
	return j.taken || slices.ContainsFunc(j.Tasks, func(t homeTask) bool {
		return t.State != fsm.Queued && t.State != fsm.Assigned || t.Failures+t.Losses > 0
	})
}

// homeHas notes that a handler has taken an attempt, if it is one of a home job.
func (c *Core) homeHas(a *attempt) {
	if !a.Home {
		return
	}
	if num, t := c.homeTaskOf(a.ID); t != nil {
		c.homeTaken(num)
	}
}

// homeTaken notes that a handler has, or had, an attempt of a job: it stays here.
func (c *Core) homeTaken(num uint64) {
	delete(c.home.unsure, num)
	if job := c.home.jobs[num]; job != nil && !job.taken {
		job.taken = true
		if len(job.refusals) > 0 {
			c.home.stuck = 0 // what waits of it can go nowhere any more
		}
	}
}

// requeueReturned queues a home task that its handler handed back.
func (c *Core) requeueReturned(a *attempt, err error, fx *Effects) {
	c.tallies.Decline(a.handler, trouble.ClassOf(err))
	why := noRoom
	if !errors.Is(err, executor.ErrBusy) {
		why = command.Clip(err.Error())
	}
	if num, t := c.homeTaskOf(a.ID); t != nil && errors.Is(err, executor.ErrUnfit) {
		c.home.jobs[num].refused(a.handler, why)
	}
	c.requeueHomeTask(a, why, fx)
}

// mayMove reports whether a job that its own site cannot run may go to another
// site, and one is there that could. A broker of before had the numbers of jobs settled
// that it had tried at home: the state would take those for ended.
func (c *Core) mayMove(job *homeJob, s StateReader) bool {
	if job.everRan() || s.Retired(command.JobID{Site: c.site, Num: job.Spec.Num}) {
		return false
	}
	spec := job.Spec
	if at, own := slices.BinarySearch(spec.Not, c.site); !own {
		spec.Not = slices.Insert(slices.Clone(spec.Not), at, c.site)
	}
	able, _ := s.AnyFits(spec)
	return able
}

// hasNoPlace reports whether a job that its own site cannot run has nowhere else to go.
// Until the broker is registered its state may be older than the other sites' offers.
func (c *Core) hasNoPlace(job *homeJob, s StateReader) bool {
	return job.everRan() || c.incarnation != 0 && !c.mayMove(job, s)
}

// toMove reports whether a job is to go to another site now: nothing of it is
// under way here, and no handler that is left could run it.
func (c *Core) toMove(job *homeJob, s StateReader) bool {
	if int(job.counts[fsm.Queued]) != len(job.Tasks) || !c.homeRefuses(job) {
		return false
	}
	able := c.mayMove(job, s)
	if !able {
		c.home.stuck = 0 // it has failed
	}
	return able
}

// failHomeTask ends a waiting task that can run nowhere.
func (c *Core) failHomeTask(w homeWaiting, fx *Effects) {
	job := c.home.jobs[w.num]
	t := &job.Tasks[w.task]
	t.State, t.EndedMs = fsm.TaskFailed, c.now.Wall.UnixMilli()
	if t.Reason = job.noPlace(); !job.taken {
		t.Reason = command.Clip(t.Reason + "; no other site could run it")
	}
	t.Failures++
	c.writeHome(w.num, w.task, fx)
	c.retireHomeJob(w.num, fx)
}
