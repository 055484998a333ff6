package core

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Home jobs are not in the log, so their events are told by their own broker
// alone. They leave it after the record of what they tell is synced.

// emitTaskEvent tells what became of a home task, by the state it now has.
func (c *Core) emitTaskEvent(num uint64, task uint32) {
	job := c.home.jobs[num]
	t := &job.Tasks[task]
	e := c.homeEvent(num, job)
	e.Task, e.Count, e.Attempt, e.Token, e.Machine, e.Reason = job.index(task), 1, t.Attempt, t.Token, t.Machine, t.Reason
	if t.Attempt > 0 {
		e.Site = c.site
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
	}
	e.RunMs, t.runMs = t.runMs, 0 // what the ledger is told, of a failure too
	c.told = append(c.told, e)
}

// noRoom is the reason of a home task whose machine turned out to be full.
const noRoom = "waiting for room"

// requeuedAs says why a task waits again: its handler did not take it, or its
// attempt failed or was lost.
func (t *homeTask) requeuedAs() fsm.Ending {
	switch {
	case t.back:
		return fsm.EndDeclined
	case t.ExitCode != 0 || t.Signal != 0:
		return fsm.EndFailed
	}
	return fsm.EndLost
}

// emitJobEvent tells of a home job as a whole.
func (c *Core) emitJobEvent(kind fsm.EventKind, num uint64) {
	job := c.home.jobs[num]
	e := c.homeEvent(num, job)
	e.Kind, e.Count = kind, job.Spec.Count
	if kind == fsm.EventJobEnded {
		e.End = fsm.EndingOf(job.state())
	}
	c.told = append(c.told, e)
}

func (c *Core) homeEvent(num uint64, job *homeJob) node.Event {
	return node.Event{
		Event: fsm.Event{Job: command.JobID{Site: c.site, Num: num}, Need: job.Spec.Need}, At: c.now.Wall,
	}
}

// flushEvents hands what was told to the feed once this turn's writes are durable.
func (c *Core) flushEvents(fx *Effects) {
	if c.emit == nil {
		c.told = c.told[:0]
		return
	}
	told := c.told
	if c.told = nil; len(told) > 0 {
		fx.Replies = append(fx.Replies, func() { c.emit(told) })
	}
}
