package study

import (
	"cmp"
	"context"
	"slices"

	"github.com/cloudshare/cloudshare/node/sim"
)

// A study counts what coalitions wait; in a sample of its instances brokers play
// them, too. Which ones is a hash of the seed and the instance's number: no load,
// mapping or scenario is favoured, whatever the sizes of the study.

// lot returns an instance's place in the order in which a sample is taken.
func (s *Study) lot(index int) uint64 { return sim.NewKeyedRand(s.Setup.Seed, 7, uint64(index)).Next() }

// sampled reports whether the instance's lot is among the first, one in Sample.
func (s *Study) sampled(index int) bool {
	return s.Sample > 0 && sim.Scale(s.lot(index), int64(s.Sample)) == 0
}

// sample returns what tells whether an instance is in the sample: one in Sample,
// and of each scenario the first by lot in which somebody waits. An instance in
// which nobody waits shows nothing, and is not played even if it is named.
func (s *Study) sample(ctx context.Context, keys []key) (func(index int) bool, error) {
	sure := map[int]bool{}
	if s.Sample == 0 || s.Setup.Unit == 0 { // nothing is counted of jobs as they are
		return func(int) bool { return false }, nil
	}
	for _, scenario := range s.Scenarios {
		i, err := s.firstWaiting(ctx, keys, scenario)
		if err != nil {
			return nil, err
		}
		sure[i] = true
	}
	return func(index int) bool { return s.sampled(index) || sure[index] }, nil
}

// firstWaiting returns the scenario's first instance by lot in which somebody
// waits, −1 if there is none.
func (s *Study) firstWaiting(ctx context.Context, keys []key, scenario sim.Scenario) (int, error) {
	var order []int
	for i := range keys {
		if keys[i].scenario == scenario {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(s.lot(a), s.lot(b)) })
	for _, i := range order {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		in, _, err := s.instance(keys[i])
		if err != nil {
			return 0, err
		}
		if wait, err := sim.TotalWait(&in.Case); err != nil || wait > 0 {
			return i, err
		}
	}
	return -1, nil
}
