package archive

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// maxOpen bounds the attempts whose begin is remembered. Beyond it those of the
// log lose nothing in the archive: their ends tell everything.
const maxOpen = 100_000

type taskKey struct {
	job  command.JobID
	task uint32
}

// openBook follows attempts that have not ended.
type openBook struct {
	live map[taskKey]*Attempt
	// queued is when a home job was submitted or a task of it came back.
	queued map[taskKey]time.Time
}

// allTasks stands for the tasks of a home job that never had an attempt.
const allTasks = 1<<32 - 1

// applyEvent updates the book with an event. The attempt is what is known of it
// now; ended is true if the event ended it, or tasks without one. An event that
// is not fresh was followed before.
func (b *openBook) applyEvent(e *node.Event, fresh bool) (a Attempt, ended bool) {
	if b.live == nil {
		b.live, b.queued = map[taskKey]*Attempt{}, map[taskKey]time.Time{}
	}
	k := taskKey{e.Job, e.Task}
	switch e.Kind {
	case fsm.EventJobSubmitted:
		if e.ID.Home > 0 && len(b.queued) < maxOpen {
			b.queued[taskKey{e.Job, allTasks}] = e.At
		}
	case fsm.EventJobEnded:
		delete(b.queued, taskKey{e.Job, allTasks})
	case fsm.EventTaskAssigned, fsm.EventTaskStarted:
		return b.openAttempt(e, k, fresh), false
	case fsm.EventHomeRan:
		return homeRan(e), true
	case fsm.EventTaskEnded, fsm.EventTaskRequeued, fsm.EventTaskHeld:
		if e.End == fsm.NoEnding { // held, and no attempt has ended
			return a, false
		}
		if e.End == fsm.EndSuspected { // the attempt may go on, and end as told then; if it does not, nobody is charged
			return a, false
		}
		a = b.closeAttempt(e, k)
		return a, true
	default:
	}
	return a, false
}

// openAttempt opens an attempt, or notes that it runs.
func (b *openBook) openAttempt(e *node.Event, k taskKey, fresh bool) Attempt {
	a := attemptOf(e)
	if e.ID.Home > 0 {
		b.beginHome(e, k, &a)
	}
	if fresh && (b.live[k] != nil || len(b.live) < maxOpen) {
		held := a
		b.live[k] = &held
	}
	return a
}

// beginHome dates what a home event does not tell.
func (b *openBook) beginHome(e *node.Event, k taskKey, a *Attempt) {
	if was := b.live[k]; was != nil && was.Number == a.Number {
		a.Queued, a.Assigned, a.Started = was.Queued, was.Assigned, was.Started
	} else if at, ok := b.queued[k]; ok {
		a.Queued = at
	} else if a.Number == 1 {
		a.Queued = b.queued[taskKey{k.job, allTasks}]
	}
	if e.Kind == fsm.EventTaskStarted {
		a.Started = e.At
	} else {
		a.Assigned = e.At
	}
}

// closeAttempt closes an attempt.
func (b *openBook) closeAttempt(e *node.Event, k taskKey) Attempt {
	a := attemptOf(e)
	a.Outcome, a.Final = e.End, e.Kind == fsm.EventTaskEnded
	a.Ended = e.At
	if e.Delivered && e.StartedMs >= 0 { // it ended before its outputs were fetched
		a.EndedMs = e.StartedMs + e.RunMs
		a.Ended = dateOf(e, a.EndedMs)
	}
	if e.ID.Home > 0 {
		b.endHome(e, k, &a)
	}
	if a.Site == "" || e.ID.Home > 0 && b.waits(k, &a) {
		a.Number, a.Site, a.Machine, a.Token = 0, "", "", 0 // it was between two attempts
	}
	delete(b.live, k)
	delete(b.queued, k)
	if e.ID.Home > 0 && e.Kind == fsm.EventTaskRequeued && len(b.queued) < maxOpen {
		b.queued[k] = e.At
	}
	return a
}

// waits reports whether a home task was cancelled while it waited for its next
// attempt.
func (b *openBook) waits(k taskKey, a *Attempt) bool {
	_, requeued := b.queued[k]
	return requeued && b.live[k] == nil && a.ChargedMs == 0 && a.Outcome == fsm.EndCancelled
}

// endHome dates a home attempt by what its broker saw, and its measured run.
func (b *openBook) endHome(e *node.Event, k taskKey, a *Attempt) {
	a.Home, a.EndedMs = true, -1
	if was := b.live[k]; was != nil && was.Number == a.Number {
		a.Queued, a.Assigned, a.Started = was.Queued, was.Assigned, was.Started
	} else if a.Number <= 1 {
		a.Queued = b.queued[taskKey{k.job, allTasks}]
	}
	if e.RunMs > 0 {
		a.Started = e.At.Add(-time.Duration(e.RunMs) * time.Millisecond)
		if a.Started.Before(a.Queued) {
			a.Started = a.Queued
		}
	}
}

// forgetLog forgets the log's attempts: how they went on is not known.
func (b *openBook) forgetLog() {
	for k, a := range b.live {
		if !a.Home {
			delete(b.live, k)
		}
	}
}

// attemptOf returns what an event tells of an attempt.
func attemptOf(e *node.Event) Attempt {
	a := Attempt{
		Job: e.Job, Task: e.Task, Count: max(1, e.Count), Number: e.Attempt, Token: e.Token, Site: e.Site,
		Machine:  e.Machine,
		ExitCode: e.ExitCode, Signal: e.Signal, Need: e.Need, EndedMs: e.Time, ChargedMs: e.RunMs,
		Index: e.ID.Entry, Reason: e.Reason, Home: e.ID.Home > 0, Measured: e.Measured,
	}
	a.Queued, a.Assigned, a.Started = dateOf(e, e.QueuedMs), dateOf(e, e.AssignedMs), dateOf(e, e.StartedMs)
	return a
}

// dateOf turns one of an event's log times into a date; −1 is the zero time.
func dateOf(e *node.Event, ms int64) time.Time {
	if ms < 0 || e.Time < 0 {
		return time.Time{}
	}
	return e.At.Add(-time.Duration(e.Time-ms) * time.Millisecond)
}

// homeRan returns a run at home as the log has it: without attempt and outcome.
func homeRan(e *node.Event) Attempt {
	a := attemptOf(e)
	a.Home, a.Final = true, true
	a.EndedMs = max(0, e.StartedMs) + e.RunMs
	a.Ended = dateOf(e, a.EndedMs)
	return a
}
