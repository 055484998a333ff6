package sim

import (
	"fmt"
	"slices"
)

// Weight is how much a second of a task's wait counts. Of unit tasks all weights
// are the same up to a factor; of jobs as they are each is another yardstick.
type Weight uint8

// The weights. Only ByWork has nearly the same sum under every policy: who serves
// short work first makes waits shorter, but not the waits of the work
// (a conservation law; exact on one core).
const (
	ByTask Weight = iota // a job's wait
	ByCore               // times its cores
	ByWork               // times its core-minutes, a part of one counts as one
)

// Weights lists them.
func Weights() []Weight { return []Weight{ByTask, ByCore, ByWork} }

// String returns the name in reports.
func (w Weight) String() string {
	switch w {
	case ByTask:
		return "wait of each job"
	case ByCore:
		return "wait · cores"
	case ByWork:
		return "wait · core-minutes"
	}
	return fmt.Sprintf("Weight(%d)", uint8(w))
}

func (w Weight) of(t *Task) int64 {
	switch w {
	case ByCore:
		return t.Width
	case ByWork:
		return (t.Width*t.Run + 59) / 60
	case ByTask:
	}
	return 1
}

// WaitsBy sums what the federation's tasks waited, by owner.
func WaitsBy(c *Case, start []int64, weight Weight) []int64 {
	waits := make([]int64, len(c.Cores))
	for i := range c.Tasks {
		if t := &c.Tasks[i]; !t.Background {
			waits[t.Site] += (start[i] - t.Release) * weight.of(t)
		}
	}
	return waits
}

// folded returns the case of a coalition alone in which every task can run: one wider
// than its largest site takes all cores of one so wide, for as much longer.
func (c *Case) folded(s Coalition) *Case {
	sub := c.Of(s)
	widest := slices.Max(sub.Cores)
	for i := range sub.Tasks {
		if t := &sub.Tasks[i]; t.Width > widest {
			t.Run, t.Width = (t.Run*t.Width+widest-1)/widest, widest
		}
	}
	return sub
}

// References returns what each coalition waits by itself, first come, first
// served, by each weight: the fixed yardstick of jobs as they are, for which
// the total depends on the policy.
func (c *Case) References() [][]int64 {
	v := make([][]int64, len(Weights()))
	for w := range v {
		v[w] = make([]int64, 1<<len(c.Cores))
	}
	for s := Coalition(1); s <= Grand(len(c.Cores)); s++ {
		whole := c.Of(s)
		out := playBare(c.folded(s), firstCome{})
		for w := range v {
			v[w][s] = Sum(WaitsBy(whole, out.Start, Weight(w)))
		}
	}
	return v
}
