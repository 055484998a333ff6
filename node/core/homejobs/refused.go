package homejobs

import (
	"errors"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// A handler may refuse a home task for good: its site's policy forbids the image,
// for example. The site then asks another handler of its own. If there is none, the whole
// job goes to the federation, where other sites may take it. If none of those could
// either, or if some of the job's tasks run here, the task has failed.

// refusal is a handler's word that it will never run a job's tasks.
type refusal struct{ handler, why string }

// refused notes a handler's word.
func (j *Job) refused(by, why string) {
	if !j.refusedBy(by) {
		j.refusals = append(j.refusals, refusal{by, why})
	}
}

func (j *Job) refusedBy(handler string) bool {
	return slices.ContainsFunc(j.refusals, func(r refusal) bool { return r.handler == handler })
}

// refusers returns the handlers that refuse it.
func (j *Job) refusers() []string {
	var by []string
	for _, r := range j.refusals {
		by = append(by, r.handler)
	}
	return by
}

// Refuses reports whether handlers refuse a job, and no other of the site could
// ever run it.
func (b *Book) Refuses(job *Job) bool {
	return len(job.refusals) > 0 && !b.machines.FitsEmpty(&job.Spec, job.refusers()...)
}

// NoPlace says why no machine of the site could ever take the job's tasks.
func (j *Job) NoPlace() string {
	if len(j.refusals) > 0 {
		return j.refusals[0].why
	}
	return TooSmall
}

// everRan reports whether some task of the job may have run, in an earlier life of
// the broker too: what was only handed back has counted as no failure and no loss.
func (j *Job) everRan() bool {
	return j.taken || slices.ContainsFunc(j.Tasks, func(t Task) bool {
		return t.State != fsm.Queued && t.State != fsm.Assigned || t.Failures+t.Losses+t.Orphans > 0
	})
}

// Has notes that a handler has taken an attempt, if it is one of a home job.
func (b *Book) Has(a *attempts.Attempt) {
	if !a.Home {
		return
	}
	if num, t := b.taskOf(a.ID); t != nil {
		b.taken(num)
	}
}

// begun notes that something of a job has run: it stays here, and its number may be settled.
func (b *Book) begun(num uint64) {
	b.taken(num)
	delete(b.unsure, num)
}

// handedBack notes that no handler has an attempt of a job any more of which nothing ran: what
// was taken and could not begin may go elsewhere.
func (b *Book) handedBack(num uint64) {
	if job := b.jobs[num]; b.unsure[num] && job.allQueued() {
		job.taken = false
	}
}

// taken notes that a handler has, or had, an attempt of a job. Its number stays unsettled until
// it begins, for the handler may hand it back.
func (b *Book) taken(num uint64) {
	if job := b.jobs[num]; job != nil && !job.taken {
		job.taken = true
		if len(job.refusals) > 0 {
			b.unstick() // what waits of it can go nowhere any more
		}
	}
}

// RequeueReturned queues a home task that its handler handed back.
func (b *Book) RequeueReturned(a *attempts.Attempt, err error, fx *turn.Effects) {
	b.tallies.Decline(a.Handler, trouble.ClassOf(err))
	why := noRoom
	if !errors.Is(err, executor.ErrBusy) {
		why = command.Clip(err.Error())
	}
	if num, t := b.taskOf(a.ID); t != nil && errors.Is(err, executor.ErrUnfit) {
		b.jobs[num].refused(a.Handler, why)
	}
	b.requeue(a, why, fx)
}

// mayMove reports whether a job that its own site cannot run may go to another
// site, and one is there that could. A broker of before had the numbers of jobs settled
// that it had tried at home: the state would take those for ended.
func (b *Book) mayMove(job *Job, s turn.StateReader) bool {
	if job.everRan() || s.Retired(command.JobID{Site: b.site, Num: job.Spec.Num}) {
		return false
	}
	spec := job.Spec
	if at, own := slices.BinarySearch(spec.Not, b.site); !own {
		spec.Not = slices.Insert(slices.Clone(spec.Not), at, b.site)
	}
	able, _ := s.AnyFits(spec)
	return able
}

// hasNoPlace reports whether a job that its own site cannot run has nowhere else to go.
// Until the broker is registered its state may be older than the other sites' offers.
func (b *Book) hasNoPlace(job *Job, registered bool, s turn.StateReader) bool {
	return job.everRan() || registered && !b.mayMove(job, s)
}

// toMove reports whether a job is to go to another site now: nothing of it has begun,
// or nothing of it is under way here, and no handler that is left could run it, or all
// machines rest. failed: it can go nowhere, so that its tasks are to be looked at again.
func (b *Book) toMove(job *Job, s turn.StateReader) (able, failed bool) {
	if job.isUntouched() {
		return true, false
	}
	refused := b.Refuses(job)
	if !job.allQueued() || !refused && !b.machines.AllResting() {
		return false, false
	}
	able = b.mayMove(job, s)
	return able, !able && refused
}

// failTask ends a waiting task that can run nowhere.
func (b *Book) failTask(w waitingTask, fx *turn.Effects) {
	job := b.jobs[w.num]
	t := &job.Tasks[w.task]
	t.State, t.EndedMs = fsm.TaskFailed, b.now.Wall.UnixMilli()
	if t.Reason = job.NoPlace(); !job.taken {
		t.Reason = command.Clip(t.Reason + "; no other site could run it")
	}
	t.Failures++
	b.write(w.num, w.task, fx)
	b.retire(w.num, fx)
}

// TooSmall is why a home task waits that would not start with nothing else running.
const TooSmall = "no machine of its site could take it now, even if it were idle"

// noRoom is the reason of a home task whose machine turned out to be full.
const noRoom = "waiting for room"
