// Package gates decides which tasks of this site's gated jobs may begin. The place where a task is held knows no rule
// and no time: the replicated state for jobs of the federation, package homejobs for those at home. Here it is decided
// which of the held tasks are released now, which end and why, and when to look again.
//
//	held ──Decide──▶ release ──▶ queued … failed ──▶ held
//	       └───────▶ end
//
// [Rules.Decide] is a pure function of what is held now: nothing is remembered between two looks but what
// [Elements] says of another job's tasks. The clock comes from outside, in milliseconds; it must be the one of
// [Run.SinceMs]. The package must import no clock.
package gates

import (
	"fmt"
	"iter"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Rules say when the tasks of a gated job may begin.
type Rules struct {
	Job   command.JobID
	Retry jobspec.SpecRetry
	// Parallel is how many of the job's tasks may be released and not ended, 0 = all.
	Parallel uint32
	// Each are the jobs each task of which must have succeeded before the task at its place begins.
	Each []command.JobID
}

// RulesOf returns the rules of a job's spec.
func RulesOf(id command.JobID, s *jobspec.Spec) Rules {
	r := Rules{Job: id, Retry: s.Retry, Parallel: s.Parallel}
	for _, d := range s.After {
		if d.When == jobspec.WhenEach {
			r.Each = append(r.Each, d.Job)
		}
	}
	return r
}

// Run is tasks with consecutive positions that are held, alike in all that counts here.
type Run struct {
	First, Count uint32
	// Attempt is the last one, 0 = they have not run. Invariant: Count is 1 of a task that has run.
	Attempt uint32
	// Failures so far. Failed: the last attempt was one of them, with this exit code or signal; else it was lost.
	// TimedOut: its timeout ended it.
	Failures         uint32
	Failed, TimedOut bool
	ExitCode, Signal int32
	// SinceMs is since when they are held.
	SinceMs int64
}

// View is how a gated job stands.
type View struct {
	// Open is how many tasks are released and have not ended.
	Open uint32
	// Held yields the held tasks, by ascending positions.
	Held iter.Seq[Run]
	// Each are the tasks of Rules.Each, in its order.
	Each []Elements
	// Hold: a user holds the job, so that nothing is released.
	Hold bool
	// Cancelled are tasks that a user has cancelled, in order, and CancelWhy is why.
	Cancelled []fsm.TaskRun
	CancelWhy string
}

// Span is tasks with consecutive positions whose last attempt was this one; 0 = they have not run.
type Span struct{ First, Count, Attempt uint32 }

// End is tasks that are not tried again, or cannot begin any more.
type End struct {
	Span
	// Failed: they have failed; else they are cancelled.
	Failed bool
	Reason string
}

// Waiting counts held tasks by why they are held.
type Waiting struct {
	ByHand, Backoff, Parallel, Each uint32
	// Unreadable: the job's rules are not known.
	Unreadable uint32
}

// All returns how many are held.
func (w *Waiting) All() uint32 { return w.ByHand + w.Backoff + w.Parallel + w.Each + w.Unreadable }

// Decision says what is to be done now.
type Decision struct {
	Release []Span
	End     []End
	// NextMs is when to look again even if nothing has changed; 0 = then only.
	NextMs int64
	// More: there is more to be done than was asked for: look again once this is done.
	More bool
	// Waiting are the tasks that stay held.
	Waiting Waiting
}

// decider makes one decision.
type decider struct {
	*Rules
	v     *View
	now   int64
	most  int
	slots uint32
	d     Decision
}

// Decide says what is to be done with the held tasks at a moment, in at most so many spans.
func (r *Rules) Decide(v View, now int64, most int) Decision {
	x := decider{Rules: r, v: &v, now: now, most: most, slots: command.MaxCount}
	if r.Parallel > 0 {
		x.slots = r.Parallel - min(r.Parallel, v.Open)
	}
	for run := range v.Held {
		if !x.judge(run) {
			x.d.More = true
			break
		}
	}
	return x.d
}

// judge decides about one run; false: there is no room for another span.
func (x *decider) judge(run Run) bool {
	all := Span{run.First, run.Count, run.Attempt}
	if run.Failed {
		if why := x.forGood(&run); why != "" {
			return x.end(all, true, why)
		}
	}
	for left := all; left.Count > 0; {
		part, standing, why := x.elements(left)
		left.First, left.Count = left.First+part.Count, left.Count-part.Count
		switch {
		case standing == Never:
			if !x.end(part, false, why) {
				return false
			}
		case x.v.Hold:
			x.d.Waiting.ByHand += part.Count
		case standing == Pending:
			x.d.Waiting.Each += part.Count
		case run.Failed && x.pauses(&run):
			x.d.Waiting.Backoff++
		default:
			if !x.release(part) {
				return false
			}
		}
	}
	return true
}

// forGood says why tasks are not tried again that have failed, "" = they are.
func (x *decider) forGood(run *Run) string {
	code := CodeOf(run.ExitCode, run.Signal)
	end := fmt.Sprintf("exit %d", code)
	if run.TimedOut {
		end += " at its timeout"
	}
	switch {
	case x.Retry.Again(code):
		return ""
	case len(x.Retry.NotOn) > 0:
		return end + ", after which it is not tried again (retry.not_on)"
	default:
		return end + ", after which it is not tried again (retry.only_on has others)"
	}
}

// CodeOf returns the exit code by which retry.only_on and not_on go: that of a process which a signal ended is
// 128 and the signal, as in a shell.
func CodeOf(exit, signal int32) int {
	if signal > 0 {
		return 128 + int(signal)
	}
	return int(exit)
}

// pauses reports whether a task's pause after a failure is not over, and has it looked at again then.
func (x *decider) pauses(run *Run) bool {
	if x.Retry.Backoff == 0 {
		return false
	}
	due := run.SinceMs + x.PauseMs(run.First, run.Failures)
	if due <= x.now {
		return false
	}
	if x.d.NextMs == 0 || due < x.d.NextMs {
		x.d.NextMs = due
	}
	return true
}

// elements returns the first tasks of a span that stand alike, as Rules.Each goes.
func (x *decider) elements(s Span) (part Span, standing Standing, why string) {
	cancelled, until := among(x.v.Cancelled, s.First)
	if until-s.First < s.Count {
		s.Count = until - s.First
	}
	if cancelled {
		return s, Never, x.v.CancelWhy
	}
	standing = OK
	for i := range x.v.Each {
		st, until := x.v.Each[i].At(s.First)
		if until-s.First < s.Count {
			s.Count = until - s.First
		}
		if st == Never && standing != Never {
			why = x.v.Each[i].Why(x.Each[i], s.First)
		}
		standing = max(standing, st)
	}
	return s, standing, why
}

// release has tasks begin as far as the others that run allow.
func (x *decider) release(s Span) bool {
	n := min(s.Count, x.slots)
	x.d.Waiting.Parallel += s.Count - n
	if n == 0 {
		return true
	}
	if len(x.d.Release)+len(x.d.End) == x.most {
		return false
	}
	x.d.Release = append(x.d.Release, Span{s.First, n, s.Attempt})
	x.slots -= n
	return true
}

func (x *decider) end(s Span, failed bool, why string) bool {
	if len(x.d.Release)+len(x.d.End) == x.most {
		return false
	}
	x.d.End = append(x.d.End, End{s, failed, why})
	return true
}
