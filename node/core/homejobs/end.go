package homejobs

import (
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/core/usage"
	"github.com/cloudshare/cloudshare/node/record"
)

// MaxLosses after which a task ends as lost, at home as in the federation.
const MaxLosses = 5

// requeue queues a home task whose machine turned out to be full, or that its
// handler refused, with why as its reason.
func (b *Book) requeue(a *attempts.Attempt, why string, fx *turn.Effects) {
	num, t := b.taskOf(a.ID)
	b.attempts.Drop(a, fx)
	if t == nil || t.Attempt != a.ID.Attempt || !isLive(t.State) {
		return
	}
	if t.State == fsm.Stopping {
		t.State, t.EndedMs = fsm.TaskCancelled, b.now.Wall.UnixMilli()
		b.write(num, a.ID.Task, fx)
		b.retire(num, fx)
		return
	}
	t.State, t.Reason, t.back = fsm.Queued, why, true
	b.await(num, a.ID.Task)
	b.write(num, a.ID.Task, fx)
	b.handedBack(num)
}

// HandleEnded settles a home attempt: retry, or the task's end.
func (b *Book) HandleEnded(a *attempts.Attempt, r executor.Result, fx *turn.Effects) {
	num, t := b.taskOf(a.ID)
	b.attempts.Drop(a, fx)
	if t == nil || t.Attempt != a.ID.Attempt || !isLive(t.State) {
		return // its record stayed behind; the task's own has the outcome
	}
	b.begun(num)
	b.tallies.End(a.Handler, r, a.Stopping)
	b.report(num, a, r, fx)
	spec := &b.jobs[num].Spec
	t.ExitCode, t.Signal = r.ExitCode, r.Signal
	if m := a.Measured(r.Usage); !m.IsZero() {
		t.Measured, t.measures = &m, true
	}
	if t.State != fsm.Stopping || r.Detail == "" || r.Cause != executor.Vanished && r.Cause != executor.Orphaned {
		t.Reason = r.Detail // else it says who cancelled it
	}
	if !r.Started.IsZero() {
		t.StartedMs = r.Started.UnixMilli()
	}
	outcome := attempts.Outcome(r, a.Stopping)
	t.orphaned = outcome == command.Orphaned
	switch outcome {
	case command.Failed, command.TimedOut:
		t.Failures++
	case command.Lost:
		t.Losses++
	case command.Orphaned:
		t.Orphans++
	case command.Succeeded, command.Stopped:
	}
	t.State = stateAfter(t, outcome, spec)
	if outcome == command.Orphaned && t.State == fsm.TaskFailed {
		t.Reason = fsm.OwnersFault(b.site, r.Detail)
	}
	if t.State == fsm.Queued {
		b.await(num, a.ID.Task)
	} else {
		t.EndedMs = b.now.Wall.UnixMilli()
	}
	b.write(num, a.ID.Task, fx)
	b.retire(num, fx)
}

// report adds an ended run to the rows for the ledger. Lost runs credit and debit nobody.
func (b *Book) report(num uint64, a *attempts.Attempt, r executor.Result, fx *turn.Effects) {
	if r.Run <= 0 || attempts.Outcome(r, a.Stopping) == command.Lost {
		return
	}
	job := b.jobs[num]
	row := usage.Row{
		Job: num, Task: job.index(a.ID.Task), Need: command.Resources(a.Need),
		EndedMs: r.Started.Add(r.Run).UnixMilli(), RunMs: r.Run.Milliseconds(),
		WaitMs: turn.Span(r.Started.UnixMilli() - job.queuedMs),
	}
	job.Tasks[a.ID.Task].runMs = row.RunMs
	b.usage.Add(row, fx)
}

// stateAfter returns the same rule as the federation's (fsm): a cancelled task
// never runs again, failures count towards max_attempts, losses do not, five
// losses are an end, and so are five orphans, by their owner's fault.
func stateAfter(t *Task, outcome command.Outcome, spec *command.JobSpec) fsm.TaskState {
	if t.State == fsm.Stopping && outcome != command.Succeeded {
		return fsm.TaskCancelled
	}
	switch outcome {
	case command.Succeeded:
		return fsm.TaskSucceeded
	case command.Stopped:
		return fsm.TaskCancelled
	case command.Lost:
		if t.Losses >= MaxLosses || spec.OnLoss == command.Never {
			return fsm.TaskLost
		}
		return fsm.Queued
	case command.Orphaned:
		switch {
		case spec.OnLoss == command.Never:
			return fsm.TaskLost
		case t.Orphans >= fsm.MaxOrphans:
			return fsm.TaskFailed
		}
		return fsm.Queued
	case command.Failed, command.TimedOut:
		if t.Failures < spec.MaxAttempts {
			return fsm.Queued
		}
		return fsm.TaskFailed
	}
	return fsm.TaskFailed
}

// retire remembers an ended job for a while and drops the oldest.
func (b *Book) retire(num uint64, fx *turn.Effects) {
	if !b.jobs[num].Ended() {
		return
	}
	delete(b.unsure, num)
	delete(b.byHand, num)
	b.ended = append(b.ended, num)
	b.fresh = append(b.fresh, num)
	b.emitJobEvent(fsm.EventJobEnded, num)
	for len(b.ended) > MaxEnded {
		old := b.ended[0]
		b.ended = b.ended[1:]
		b.Forget(old, fx)
	}
}

// TakeEnded returns the jobs that have ended since it was called last; some of them may be forgotten already.
func (b *Book) TakeEnded() []uint64 {
	nums := b.fresh
	b.fresh = nil
	return nums
}

// Forget drops all that is known of a home job.
func (b *Book) Forget(num uint64, fx *turn.Effects) {
	for i := range b.jobs[num].Tasks {
		if b.jobs[num].Tasks[i] != (Task{}) {
			fx.Writes = append(fx.Writes, record.Remove(record.BucketTasks, record.TaskKey(num, uint32(i))))
		}
	}
	fx.Writes = append(fx.Writes, record.Remove(record.BucketHome, record.Number(num)))
	delete(b.jobs, num)
	delete(b.unsure, num)
	delete(b.byHand, num)
	if i, ok := slices.BinarySearch(b.order, num); ok {
		copy(b.order[1:i+1], b.order[:i]) // it is near the front
		b.order = b.order[1:]
	}
}
