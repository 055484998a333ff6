// Package attempts holds everything that this site has handed to its handlers and that is
// not settled yet, for itself and for others: each with a record in the journal, synced
// before the handler sees it, and with what it takes of its machine.
package attempts

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/core/machines"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// Book holds the attempts that are not settled.
type Book struct {
	Memory
	site     string
	now      *turn.Clock
	machines *machines.Set
	// byID are all of them. Invariant: each has a record in the journal.
	byID map[executor.ID]*Attempt
	// yielded is how many have yielded their machine.
	yielded int
}

// NewBook returns a site's book without attempts; open reads payloads.
func NewBook(site string, now *turn.Clock, m *machines.Set, open Open) Book {
	return Book{Memory: Memory{open: open}, site: site, now: now, machines: m, byID: map[executor.ID]*Attempt{}}
}

// Find returns an attempt, nil if it is not known here or settled.
func (b *Book) Find(id executor.ID) *Attempt { return b.byID[id] }

// Len returns how many are not settled.
func (b *Book) Len() int { return len(b.byID) }

// All yields the attempts in no order; those that it yields may be dropped meanwhile.
func (b *Book) All() iter.Seq2[executor.ID, *Attempt] { return maps.All(b.byID) }

// StartOf says what to run, and with which files; the error is that of an unreadable payload. The handler is Start's
// to name.
func (b *Book) StartOf(rec Record, owner string, timeoutMs int64, payload []byte) (turn.StartEffect, error) {
	st := turn.StartEffect{HandlerID: turn.HandlerID{ID: rec.ID}, Task: executor.Task{
		ID: rec.ID, Owner: owner, Site: b.site, Machine: rec.Machine, Need: rec.Need,
		Timeout: time.Duration(timeoutMs) * time.Millisecond,
	}}
	spec, err := b.specOf(owner, payload)
	if err != nil {
		return st, fmt.Errorf("unreadable job: %w", err)
	}
	task := &st.Task
	st.Index, st.Inputs, task.Outputs = rec.ID.Task, spec.Inputs, outputsOf(&spec.Outputs)
	task.Command, task.Image, task.Env, task.Network = spec.Command, spec.Image, spec.Env, spec.Network
	if spec.Indices.Len() > rec.ID.Task {
		if task.Env == nil {
			task.Env = map[string]string{}
		}
		st.Index = spec.Indices.At(rec.ID.Task)
		task.Env[executor.IndexVar] = strconv.FormatUint(uint64(st.Index), 10)
	}
	return st, nil
}

// outputsOf returns what a handler is to keep of what a job's task leaves.
func outputsOf(o *jobspec.Outputs) executor.Outputs {
	if !o.Wanted() {
		return executor.Outputs{}
	}
	return executor.Outputs{
		Paths: slices.Clone(o.Paths), Optional: slices.Clone(o.Optional), MaxBytes: o.MaxBytes, When: o.When,
	}
}

// Start records an attempt and has its handler start it after the sync, or its files fetched first if another site has
// them (see Begin). With err, why it cannot be started, it only records it, and returns its end.
func (b *Book) Start(rec Record, st turn.StartEffect, err error, fx *turn.Effects) (a *Attempt, end *executor.Result) {
	if rec.AssignedMs == 0 {
		rec.AssignedMs = b.now.Wall.UnixMilli()
	}
	handler := b.machines.HandlerOf(rec.Machine)
	st.Handler = handler
	rec.Inputs, rec.Outputs = inputBlobs(st.Inputs), st.Task.Outputs
	if len(rec.Inputs) > 0 {
		rec.Index = st.Index
	}
	if err == nil && b.IsStaged(&st) {
		rec.Staging, st.Stage = true, true
	}
	a = &Attempt{Record: rec, Handler: handler, Begun: b.now.Boot}
	if rec.Staging {
		a.held = &st
	}
	b.add(a)
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketAttempts, a.recordKey(), rec))
	if err != nil {
		return a, &executor.Result{Cause: executor.NoStart, Detail: err.Error()}
	}
	fx.Starts = append(fx.Starts, st)
	return a, nil
}

func (b *Book) add(a *Attempt) {
	b.byID[a.ID] = a
	b.machines.Take(a.Machine, a.Need, a.Home)
}

// Adopt takes an attempt of an earlier life of the broker; accepted: the handler has it.
func (b *Book) Adopt(rec Record, handler string, accepted bool) *Attempt {
	a := &Attempt{Record: rec, Handler: handler, Accepted: accepted}
	b.add(a)
	return a
}

// Accept notes that the handler has an attempt: from now on it can be stopped, and is if
// that is due.
func (b *Book) Accept(a *Attempt, fx *turn.Effects) {
	a.Accepted = true
	a.releaseWaiters()
	if a.due {
		b.Stop(a, a.dueWhy, fx)
	}
}

// Stop tells the handler once, as soon as it has the attempt; what prepares its start hears of it at once.
func (b *Book) Stop(a *Attempt, why string, fx *turn.Effects) {
	if a.Stopping || a.Ended != nil || a.Collecting {
		b.stopWaiting(a, why, fx)
		return
	}
	if !a.Accepted {
		first := !a.due
		a.due, a.dueWhy = true, why
		if first && a.preparing {
			b.stopEarly(a, fx)
		}
		return
	}
	a.Stopping = true
	fx.Stops = append(fx.Stops, turn.StopEffect{HandlerID: turn.HandlerID{Handler: a.Handler, ID: a.ID}, Why: why})
}

// End notes the end of an attempt that is to be reported. What it took is free again.
func (b *Book) End(a *Attempt, r *executor.Result) {
	b.free(a)
	a.Ended = r
	a.releaseWaiters()
}

// Drop forgets a settled attempt, here and at its handler.
func (b *Book) Drop(a *Attempt, fx *turn.Effects) {
	a.releaseWaiters()
	if a.Ended == nil {
		b.free(a)
	}
	delete(b.byID, a.ID)
	// The order, or the home task's record, has the outcome: a record that stays
	// behind is found to be settled.
	fx.Writes = append(fx.Writes, record.Tidy(record.BucketAttempts, a.recordKey()))
	fx.Forgets = append(fx.Forgets, turn.HandlerID{Handler: a.Handler, ID: a.ID})
}

// AwaitAccepted closes ready once no start of an attempt is under way, and reports
// whether the attempt is known; else ready stays as it is.
func (b *Book) AwaitAccepted(id executor.ID, ready chan struct{}) (known bool) {
	a := b.byID[id]
	switch {
	case a == nil:
		return false
	case !a.Accepted && a.Ended == nil:
		a.waiters = append(a.waiters, ready)
	default:
		close(ready)
	}
	return true
}
