package homejobs

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// Home jobs are not in the log, so only their own broker emits their events, each after
// the record of what it reports is synced.

// SetEmit has events of home jobs given to those who read, once they are durable.
func (b *Book) SetEmit(tell func([]node.Event)) { b.emit = tell }

// emitTaskEvent tells what became of a home task, by the state it now has.
func (b *Book) emitTaskEvent(num uint64, task uint32) {
	job := b.jobs[num]
	t := &job.Tasks[task]
	e := b.event(num, job)
	e.Task, e.Count, e.Attempt, e.Token, e.Machine, e.Reason = job.index(task), 1, t.Attempt, t.Token, t.Machine,
		t.Reason
	if t.Attempt > 0 {
		e.Site = b.site
	}
	switch t.State {
	case fsm.Assigned:
		e.Kind = fsm.EventTaskAssigned
	case fsm.Running:
		e.Kind = fsm.EventTaskStarted
	case fsm.Stopping:
		e.Kind = fsm.EventTaskStopping
	case fsm.Queued, fsm.Withdrawn:
		e.Kind, e.End = fsm.EventTaskRequeued, t.requeuedAs()
	case fsm.TaskSucceeded, fsm.TaskFailed, fsm.TaskCancelled, fsm.TaskLost:
		e.Kind, e.End = fsm.EventTaskEnded, fsm.EndingOf(t.State)
		e.ExitCode, e.Signal = int32(t.ExitCode), int32(t.Signal)
	case fsm.Held: // no task at home is
	}
	e.RunMs, t.runMs = t.runMs, 0 // what the ledger is told, of a failure too
	if t.measures {
		e.Measured, t.measures = *t.Measured, false
	}
	b.told = append(b.told, e)
}

// requeuedAs says why a task waits again: its handler did not take it, or its
// attempt failed or was lost.
func (t *Task) requeuedAs() fsm.Ending {
	switch {
	case t.back:
		return fsm.EndDeclined
	case t.orphaned:
		return fsm.EndOrphaned
	case t.ExitCode != 0 || t.Signal != 0:
		return fsm.EndFailed
	}
	return fsm.EndLost
}

// emitJobEvent tells of a home job as a whole.
func (b *Book) emitJobEvent(kind fsm.EventKind, num uint64) {
	job := b.jobs[num]
	e := b.event(num, job)
	e.Kind, e.Count = kind, job.Spec.Count
	if kind == fsm.EventJobEnded {
		e.End = fsm.EndingOf(job.State())
	}
	b.told = append(b.told, e)
}

func (b *Book) event(num uint64, job *Job) node.Event {
	return node.Event{
		Event: fsm.Event{Job: command.JobID{Site: b.site, Num: num}, Need: job.Spec.Need}, At: b.now.Wall,
	}
}

// FlushEvents hands what was told to the feed once this turn's writes are durable.
func (b *Book) FlushEvents(fx *turn.Effects) {
	if b.emit == nil {
		b.told = b.told[:0]
		return
	}
	told := b.told
	if b.told = nil; len(told) > 0 {
		fx.Replies = append(fx.Replies, func() { b.emit(told) })
	}
}
