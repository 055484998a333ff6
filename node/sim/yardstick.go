package sim

import (
	"context"
	"fmt"
	"math"
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

// String is the name in reports.
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

// Yardstick is what one weight measures of one instance.
type Yardstick struct {
	Phi   []int64 // φ·Scale by site
	Total int64   // v(N), of the reference
	// Waits by contestant, then by site.
	Waits [][]int64
}

// waitsBy sums what the federation's tasks waited, by owner.
func waitsBy(c *Case, start []int64, weight Weight) []int64 {
	waits := make([]int64, len(c.Cores))
	for i := range c.Tasks {
		if t := &c.Tasks[i]; !t.Background {
			waits[t.Site] += (start[i] - t.Release) * weight.of(t)
		}
	}
	return waits
}

// folded is the case of a coalition alone in which every task can run: one wider
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

// references returns what each coalition waits by itself, first come, first
// served, by each weight: the fixed yardstick of jobs as they are, for which
// the total depends on the policy.
func (c *Case) references() [][]int64 {
	v := make([][]int64, len(Weights()))
	for w := range v {
		v[w] = make([]int64, 1<<len(c.Cores))
	}
	for s := Coalition(1); s <= Grand(len(c.Cores)); s++ {
		whole := c.Of(s)
		out := playBare(c.folded(s), firstCome{})
		for w := range v {
			v[w][s] = total(waitsBy(whole, out.Start, Weight(w)))
		}
	}
	return v
}

// Undeserved is what sites wait beyond their fair shares, in seconds·Scale. Of
// equal tasks it is half the L1 distance, since waits and shares have one sum; of
// others it does not count in a policy's favour that it makes a site wait longer.
func (f *Fair) Undeserved(waits []int64) int64 {
	var sum int64
	for o, w := range waits {
		sum += max(0, f.Scale*w-f.Phi[o])
	}
	return sum
}

// playYardsticks has the policies beyond the paper and the ceiling play an
// instance; of unit tasks fair is known, and starts must be what others' are.
func (s *Study) playYardsticks(ctx context.Context, r *Row, in *Instance, fair *Fair) error {
	if len(s.Beyond) == 0 {
		return nil
	}
	y := Yardstick{Phi: fair.Phi, Total: fair.Total, Waits: slices.Clone(r.Waits)}
	for _, policy := range s.Beyond {
		in.Params.Policy = policy
		out, err := PlayContext(ctx, &in.Case)
		if err != nil {
			return err
		}
		y.Waits = append(y.Waits, out.Waits(&in.Case))
	}
	y.Waits = append(y.Waits, playBare(&in.Case, newCeiling(&in.Case, ByTask, fair)).Waits(&in.Case))
	for _, waits := range y.Waits[len(r.Waits):] {
		if sum := total(waits); sum != fair.Total {
			return fmt.Errorf("%w: %d seconds beyond the paper, counted %d", ErrTheorem, sum, fair.Total)
		}
	}
	r.Yardsticks = []Yardstick{y}
	return nil
}

// playAsTheyAre plays an instance of jobs as they are, and measures it by each
// weight.
func (s *Study) playAsTheyAre(ctx context.Context, r *Row, in *Instance) error {
	r.TooWide = in.TooWide
	var fairs []*Fair
	for _, v := range in.references() {
		fair, err := Shapley(v)
		if err != nil {
			return err
		}
		fairs = append(fairs, fair)
		r.Yardsticks = append(r.Yardsticks, Yardstick{Phi: fair.Phi, Total: fair.Total})
	}
	r.Scale, r.Phi, r.Total = fairs[ByTask].Scale, fairs[ByTask].Phi, fairs[ByTask].Total
	for i, policy := range append(slices.Clone(s.Policies), s.Beyond...) {
		in.Params.Policy = policy
		out, err := PlayContext(ctx, &in.Case)
		if err != nil {
			return err
		}
		for w := range r.Yardsticks {
			r.Yardsticks[w].Waits = append(r.Yardsticks[w].Waits, waitsBy(&in.Case, out.Start, Weight(w)))
		}
		if i == 0 {
			r.Home, r.Decisions, r.Events = out.Home, out.Decisions, out.Entries
		}
	}
	r.Waits = slices.Clone(r.Yardsticks[ByTask].Waits[:len(s.Policies)])
	known := playBare(&in.Case, newForeknowing(&in.Case))
	mixed := playBare(&in.Case, newAnchored(&in.Case))
	for w := range r.Yardsticks {
		r.Yardsticks[w].Waits = append(r.Yardsticks[w].Waits, waitsBy(&in.Case, known.Start, Weight(w)), waitsBy(&in.Case, mixed.Start, Weight(w)))
		best := playBare(&in.Case, newCeiling(&in.Case, Weight(w), fairs[w]))
		r.Yardsticks[w].Waits = append(r.Yardsticks[w].Waits, waitsBy(&in.Case, best.Start, Weight(w)))
	}
	return nil
}

// fair is φ by the yardstick.
func (y *Yardstick) fair(scale int64) *Fair { return &Fair{Scale: scale, Phi: y.Phi, Total: y.Total} }

// What is no policy, in tables.
const (
	ceilingName     = "φ of the end known"
	foreknowingName = "ALONE by work, lengths known"
	anchoredName    = "the same and lent − used"
)

// contestants names what a yardstick's waits are of: the study's policies, those
// beyond the paper, and what is no policy.
func (s *Study) contestants() []string {
	if s.Setup.Unit == 0 {
		return slices.Concat(s.Policies, s.Beyond, []string{foreknowingName, anchoredName, ceilingName})
	}
	return slices.Concat(s.Policies, s.Beyond, []string{ceilingName})
}

// measured reports whether a row has the study's yardsticks, whole.
func (s *Study) measured(r *Row) bool {
	want := len(Weights())
	switch {
	case s.Setup.Unit > 0 && len(s.Beyond) > 0:
		want = 1
	case s.Setup.Unit > 0:
		want = 0
	}
	whole := len(r.Yardsticks) == want
	for i := range r.Yardsticks {
		y := &r.Yardsticks[i]
		whole = whole && len(y.Phi) == s.Setup.Sites && y.Total >= 0 && y.Total <= math.MaxInt64/r.Scale && len(y.Waits) == len(s.contestants()) && total(y.Phi) == r.Scale*y.Total
		for _, waits := range y.Waits {
			whole = whole && len(waits) == s.Setup.Sites && slices.Min(waits) >= 0
		}
	}
	return whole
}
