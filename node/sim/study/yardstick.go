package study

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cloudshare/cloudshare/node/sim"
)

// Yardstick is what one weight measures of one instance.
type Yardstick struct {
	Phi   []int64 // φ·Scale by site
	Total int64   // v(N), of the reference
	// Waits by contestant, then by site.
	Waits [][]int64
}

// playYardsticks has the policies beyond the paper and the ceiling play an
// instance; of unit tasks fair is known, and starts must be what others' are.
func (s *Study) playYardsticks(ctx context.Context, r *Row, in *sim.Instance, fair *sim.Fair) error {
	if len(s.Beyond) == 0 {
		return nil
	}
	y := Yardstick{Phi: fair.Phi, Total: fair.Total, Waits: slices.Clone(r.Waits)}
	for _, policy := range s.Beyond {
		in.Params.Policy = policy
		out, err := sim.PlayContext(ctx, &in.Case)
		if err != nil {
			return err
		}
		y.Waits = append(y.Waits, out.Waits(&in.Case))
	}
	y.Waits = append(y.Waits, sim.PlayCeiling(&in.Case, sim.ByTask, fair).Waits(&in.Case))
	for _, waits := range y.Waits[len(r.Waits):] {
		if sum := sim.Sum(waits); sum != fair.Total {
			return fmt.Errorf("%w: %d seconds beyond the paper, counted %d", sim.ErrTheorem, sum, fair.Total)
		}
	}
	r.Yardsticks = []Yardstick{y}
	return nil
}

// playAsTheyAre plays an instance of jobs as they are, and measures it by each
// weight.
func (s *Study) playAsTheyAre(ctx context.Context, r *Row, in *sim.Instance) error {
	r.TooWide = in.TooWide
	var fairs []*sim.Fair
	for _, v := range in.References() {
		fair, err := sim.Shapley(v)
		if err != nil {
			return err
		}
		fairs = append(fairs, fair)
		r.Yardsticks = append(r.Yardsticks, Yardstick{Phi: fair.Phi, Total: fair.Total})
	}
	r.Scale, r.Phi, r.Total = fairs[sim.ByTask].Scale, fairs[sim.ByTask].Phi, fairs[sim.ByTask].Total
	for i, policy := range append(slices.Clone(s.Policies), s.Beyond...) {
		in.Params.Policy = policy
		out, err := sim.PlayContext(ctx, &in.Case)
		if err != nil {
			return err
		}
		for w := range r.Yardsticks {
			r.Yardsticks[w].Waits = append(r.Yardsticks[w].Waits, sim.WaitsBy(&in.Case, out.Start, sim.Weight(w)))
		}
		if i == 0 {
			r.Home, r.Decisions, r.Events = out.Home, out.Decisions, out.Entries
		}
	}
	r.Waits = slices.Clone(r.Yardsticks[sim.ByTask].Waits[:len(s.Policies)])
	known := sim.PlayClairvoyant(&in.Case)
	mixed := sim.PlayAnchored(&in.Case)
	for w := range r.Yardsticks {
		r.Yardsticks[w].Waits = append(r.Yardsticks[w].Waits, sim.WaitsBy(&in.Case, known.Start, sim.Weight(w)),
			sim.WaitsBy(&in.Case, mixed.Start, sim.Weight(w)))
		best := sim.PlayCeiling(&in.Case, sim.Weight(w), fairs[w])
		r.Yardsticks[w].Waits = append(r.Yardsticks[w].Waits, sim.WaitsBy(&in.Case, best.Start, sim.Weight(w)))
	}
	return nil
}

// fair is φ by the yardstick.
func (y *Yardstick) fair(scale int64) *sim.Fair {
	return &sim.Fair{Scale: scale, Phi: y.Phi, Total: y.Total}
}

// What is no policy, in tables.
const (
	ceilingName     = "φ of the end known"
	clairvoyantName = "ALONE by work, lengths known"
	anchoredName    = "the same and lent − used"
)

// contestants names what a yardstick's waits are of: the study's policies, those
// beyond the paper, and what is no policy.
func (s *Study) contestants() []string {
	if s.Setup.Unit == 0 {
		return slices.Concat(s.Policies, s.Beyond, []string{clairvoyantName, anchoredName, ceilingName})
	}
	return slices.Concat(s.Policies, s.Beyond, []string{ceilingName})
}

// measured reports whether a row has the study's yardsticks, whole.
func (s *Study) measured(r *Row) bool {
	want := len(sim.Weights())
	switch {
	case s.Setup.Unit > 0 && len(s.Beyond) > 0:
		want = 1
	case s.Setup.Unit > 0:
		want = 0
	}
	whole := len(r.Yardsticks) == want
	for i := range r.Yardsticks {
		y := &r.Yardsticks[i]
		whole = whole && len(y.Phi) == s.Setup.Sites && y.Total >= 0 && y.Total <= math.MaxInt64/r.Scale &&
			len(y.Waits) == len(s.contestants()) && sim.Sum(y.Phi) == r.Scale*y.Total
		for _, waits := range y.Waits {
			whole = whole && len(waits) == s.Setup.Sites && slices.Min(waits) >= 0
		}
	}
	return whole
}
