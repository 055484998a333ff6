package gates

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
	"github.com/cloudshare/cloudshare/node/record"
)

// ByHand is why nothing of a job is released that a user holds.
const ByHand = "held by hand, until cloudshare release"

// asked is what a user has asked of one job: the journal's record of it.
type asked struct {
	Hold      bool          `json:"hold,omitempty"`
	Cancelled []fsm.TaskRun `json:"cancelled,omitempty"`
	Why       string        `json:"why,omitempty"` // they were cancelled
}

// Asked reports whether a user has asked something of a job that only its gates do: it must be gated in the state.
func (j *Job) Asked() bool { return j != nil && (j.Hold || len(j.cancelled) > 0) }

// IsGated reports whether a job is gated by its own rules, or in the state.
func (j *Job) IsGated() bool { return j.gated }

// WasHeld reports whether a user holds a job, as of an earlier run of the broker for one that was not added yet.
func (b *Book) WasHeld(num uint64) bool {
	if j := b.jobs[num]; j != nil {
		return j.Hold
	}
	return b.asked[num].Hold
}

// Cancelled returns the tasks that were cancelled before the state had the job, in order, and why.
func (b *Book) Cancelled(num uint64) ([]fsm.TaskRun, string) {
	if j := b.jobs[num]; j != nil {
		return j.cancelled, j.cancelWhy
	}
	return nil, ""
}

// SetHold holds a job, gated or not, or lets it go.
func (b *Book) SetHold(js *command.JobSpec, hold bool, fx *turn.Effects) {
	if hold {
		b.add(js)
	}
	j := b.jobs[js.Num]
	if j == nil || j.Hold == hold {
		return
	}
	j.Hold = hold
	b.record(j, fx)
	e := fsm.Event{Kind: fsm.EventJobReleased, Job: command.JobID{Site: b.Name, Num: j.num}, Count: j.count}
	if hold {
		e.Kind, e.Reason = fsm.EventJobHeld, ByHand
	}
	b.Tell(e)
	j.restUntil = 0
	b.mark(j)
}

const (
	// MaxCancelled bounds the stretches of tasks of one job that are to end before the state has it: each of its
	// records has all of them.
	MaxCancelled = 10_000
	// maxAllCancelled bounds those of all jobs.
	maxAllCancelled = 200_000
)

// CancelTasks has tasks of a job end as cancelled once the state has the job, at the given positions, and returns how
// many of them were not to end so already, and how many of the job's tasks are left. Errors: node.ErrFull.
//
// REQUIRES: the state does not have the job, nor will before it is gated.
func (b *Book) CancelTasks(
	js *command.JobSpec, positions []uint32, why string, fx *turn.Effects,
) (ended, left uint32, err error) {
	was, _ := b.Cancelled(js.Num)
	runs := slices.Clone(was)
	for _, at := range positions {
		runs = append(runs, fsm.TaskRun{From: at, To: at + 1})
	}
	runs = joined(runs)
	all := b.cancelled + len(runs) - len(was)
	if len(runs) > MaxCancelled || all > max(maxAllCancelled, b.cancelled) {
		return 0, 0, fmt.Errorf("%w: of the tasks of this job %d stretches are to end as cancelled before the federation has "+
			"it (at most %d; of all jobs %d, at most %d): cancel the whole job, or try again when the federation has it",
			node.ErrFull, len(runs), MaxCancelled, all, maxAllCancelled)
	}
	b.add(js)
	j := b.jobs[js.Num]
	j.cancelled, j.cancelWhy, b.cancelled = runs, command.Clip(why), all
	b.record(j, fx)
	after := countOf(runs)
	return after - countOf(was), j.count - after, nil
}

// Totals counts the jobs that users hold, and the tasks that are held in the state, as of the last look at each job.
func (b *Book) Totals() (byHand, tasks int) {
	for _, j := range b.jobs {
		if j.Hold {
			byHand++
		}
		tasks += int(j.counts[fsm.Held])
	}
	return byHand, tasks
}

// record has the journal know what was asked of a job.
func (b *Book) record(j *Job, fx *turn.Effects) {
	key := record.Number(j.num)
	if !j.Asked() {
		fx.Writes = append(fx.Writes, record.Remove(record.BucketGates, key))
		return
	}
	hold := j.Hold && !mutate.On("no-hold-record")
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketGates, key, asked{hold, j.cancelled, j.cancelWhy}))
}

func (b *Book) recoverAsked(k, v []byte) error {
	var a asked
	if len(k) != 8 {
		return fmt.Errorf("gates of job %x: malformed", k)
	}
	if string(v) == "hold" { // as brokers wrote it before they could hold jobs of any kind
		a.Hold = true
	} else if err := json.Unmarshal(v, &a); err != nil {
		return fmt.Errorf("gates of job %d: %w", record.DecodeNumber(k), err)
	}
	last := uint32(0)
	for _, r := range a.Cancelled {
		if r.From >= r.To || r.From < last {
			return fmt.Errorf("gates of job %d: cancelled tasks out of order", record.DecodeNumber(k))
		}
		last = r.To
	}
	b.asked[record.DecodeNumber(k)] = a
	return nil
}

// joined returns runs in order, disjoint, and none of which touches the next one.
func joined(runs []fsm.TaskRun) (out []fsm.TaskRun) {
	slices.SortFunc(runs, func(x, y fsm.TaskRun) int { return int(int64(x.From) - int64(y.From)) })
	for _, r := range runs {
		if n := len(out); n > 0 && out[n-1].To >= r.From {
			out[n-1].To = max(out[n-1].To, r.To)
			continue
		}
		out = append(out, r)
	}
	return out
}

func countOf(runs []fsm.TaskRun) (n uint32) {
	for _, r := range runs {
		n += r.To - r.From
	}
	return n
}

// among reports whether a task is in one of the runs, and up to which task the following ones are so, too.
func among(runs []fsm.TaskRun, task uint32) (is bool, until uint32) {
	i, _ := slices.BinarySearchFunc(runs, task, func(r fsm.TaskRun, task uint32) int {
		if r.To <= task {
			return -1
		}
		return 1
	})
	switch {
	case i == len(runs):
		return false, command.MaxCount
	case runs[i].From > task:
		return false, runs[i].From
	}
	return true, runs[i].To
}

// InRuns reports whether a task is in one of the runs, which are in order.
func InRuns(runs []fsm.TaskRun, task uint32) bool {
	is, _ := among(runs, task)
	return is
}
