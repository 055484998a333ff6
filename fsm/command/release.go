package command

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// GatesVersion is the first apply version that has gated jobs, Release and Prioritize.
const GatesVersion = 4

// HoldVersion is the first apply version in which a Release holds waiting tasks of any job: one that was not gated is
// from then on.
const HoldVersion = 5

// MaxGatePieces bounds how many pieces one run of a Release moves: a piece is a stretch of tasks that never ran,
// however long, or one task that did. So what a command costs follows from its bytes, whatever its jobs have become.
const MaxGatePieces = 4

// MaxGateHoles bounds how many holes the ranges of the jobs have together that one Release makes gated: a hole is tasks
// that were cancelled before their turn, between others that wait. A job that has more is not held.
const MaxGateHoles = 2000

// AnyAttempt as a GateRun's Attempt means tasks of whatever last attempt.
const AnyAttempt = math.MaxUint32

// Release moves tasks of the command's own site's gated jobs: from held to queued, back, or from held to an end. A job
// that is not gated becomes so when tasks of it are to be held. Of what is named, only that moves which is where it is
// to be taken from; the result has a code for each job.
type Release struct{ Jobs []JobGates }

// JobGates is what a Release does to one job.
type JobGates struct {
	Num  uint64
	Runs []GateRun // by task, disjoint
}

// Holds reports whether any tasks are to be held.
func (g *JobGates) Holds() bool {
	return slices.ContainsFunc(g.Runs, func(v GateRun) bool { return v.Do == GateHold })
}

// GateRun is one run of tasks [From, To).
type GateRun struct {
	From, To uint32
	// Attempt: only tasks whose last attempt was this one, 0 = those that never had one. So what was meant for a task
	// before an attempt is nothing to it afterwards. AnyAttempt = all.
	Attempt uint32
	Do      GateAction
	Reason  string // of an end, ≤ MaxDetail bytes
}

// GateAction is what happens to a run.
type GateAction uint8

// The actions.
const (
	GateRelease GateAction = iota // held tasks wait from now on
	GateHold                      // waiting tasks are held
	GateFail                      // held tasks end as failed
	GateCancel                    // held tasks end as cancelled
)

// Prioritize changes the priorities of jobs of the command's own site. Jobs that are unknown or over are passed over.
type Prioritize struct{ Jobs []Priority }

// Priority says what priority one job has from now on.
type Priority struct {
	Num      uint64
	Priority int32 // within ±MaxPriority
}

// Validate checks the bounds, and that jobs and runs are in order.
func (b *Release) Validate() error {
	if err := within("jobs", int64(len(b.Jobs)), 0, MaxJobsPerSubmit); err != nil {
		return err
	}
	runs, last := 0, uint64(0)
	for i := range b.Jobs {
		g := &b.Jobs[i]
		if g.Num <= last {
			return fmt.Errorf("%w: num %d behind %d: jobs are numbered from 1, in order", ErrOutOfBounds, g.Num, last)
		}
		if err := g.validate(); err != nil {
			return fmt.Errorf("job %d: %w", g.Num, err)
		}
		last, runs = g.Num, runs+len(g.Runs)
	}
	return within("runs", int64(runs), 0, MaxReports)
}

func (g *JobGates) validate() error {
	end := uint32(0)
	for i := range g.Runs {
		v := &g.Runs[i]
		if v.From < end || v.From >= v.To || v.To > MaxCount {
			return fmt.Errorf("%w: tasks [%d, %d) behind task %d: runs are in order, disjoint, and of at most task %d",
				ErrOutOfBounds, v.From, v.To, end, MaxCount-1)
		}
		end = v.To
		ends := v.Do == GateFail || v.Do == GateCancel
		if v.Reason != "" && !ends {
			return fmt.Errorf("%w: a reason, but no end", ErrOutOfBounds)
		}
		if err := firstError(within("action", int64(v.Do), 0, int64(GateCancel)),
			within("bytes of reason", int64(len(v.Reason)), 0, MaxDetail)); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks the bounds.
func (b *Prioritize) Validate() error {
	if err := within("jobs", int64(len(b.Jobs)), 0, MaxReports); err != nil {
		return err
	}
	for i := range b.Jobs {
		if b.Jobs[i].Num == 0 {
			return fmt.Errorf("%w: num 0: jobs are numbered from 1", ErrOutOfBounds)
		}
		if err := within("priority", int64(b.Jobs[i].Priority), -MaxPriority, MaxPriority); err != nil {
			return err
		}
	}
	return nil
}

func appendRelease(dst []byte, b *Release) []byte {
	dst = appendLen(dst, len(b.Jobs))
	for i := range b.Jobs {
		g := &b.Jobs[i]
		dst = appendLen(protowire.AppendVarint(dst, g.Num), len(g.Runs))
		for k := range g.Runs {
			v := &g.Runs[k]
			for _, n := range [...]uint32{v.From, v.To, v.Attempt} {
				dst = protowire.AppendVarint(dst, uint64(n))
			}
			dst = appendString(append(dst, byte(v.Do)), v.Reason)
		}
	}
	return dst
}

// gates reads what is done to one job, in at most so many runs.
func (r *reader) gates(g *JobGates, most int) {
	g.Num = r.number()
	g.Runs = list(r, "runs", most, minGateRun, func(r *reader, v *GateRun) {
		v.From, v.To, v.Attempt = r.uint32("from"), r.uint32("to"), r.uint32("attempt")
		v.Do = GateAction(r.uint("action", uint64(GateCancel)))
		v.Reason = r.string("reason", MaxDetail)
	})
}

func appendPrioritize(dst []byte, b *Prioritize) []byte {
	dst = appendLen(dst, len(b.Jobs))
	for i := range b.Jobs {
		dst = appendSigned(protowire.AppendVarint(dst, b.Jobs[i].Num), int64(b.Jobs[i].Priority))
	}
	return dst
}

func (r *reader) priority(p *Priority) {
	p.Num, p.Priority = r.number(), int32(r.signed("priority", math.MinInt32, math.MaxInt32))
}
