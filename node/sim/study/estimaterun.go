package study

import (
	"context"

	"github.com/cloudshare/cloudshare/node/sim"
)

// EstimateRun is what the estimates of starts came to in one instance.
type EstimateRun struct {
	Index    int // of the instance in its study
	Log      string
	Seed     uint64
	Scenario sim.Scenario
	Load     float64
	Period   int
	Policy   string
	At       sim.AskedAt
	sim.Answers
}

// Estimates plays the study's instances under its policies, with the parameters of a new
// federation, and calls save with how the estimates of starts came out in each, one call
// at a time, in no order.
func (s *Study) Estimates(ctx context.Context, workers int, save func([]EstimateRun)) error {
	if err := s.Validate(); err != nil {
		return err
	}
	keys := s.keys()
	return each(ctx, workers, keys, nil, func(ctx context.Context, i int) ([]EstimateRun,
		error,
	) {
		return s.estimates(ctx, i, keys[i])
	},
		func(runs []EstimateRun) error {
			save(runs)
			return nil
		})
}

// estimates plays one instance.
func (s *Study) estimates(ctx context.Context, index int, k key) (runs []EstimateRun, err error) {
	in, _, err := s.instance(k)
	if err != nil {
		return nil, err
	}
	for _, policy := range s.Policies {
		in.Params = sim.LiveParams(policy)
		all, err := sim.PlayEstimates(ctx, &in.Case)
		if err != nil {
			return nil, err
		}
		for at := range all {
			runs = append(runs, EstimateRun{
				Index: index, Log: s.Workloads[k.workload].Name, Seed: s.Setup.Seed, Scenario: k.scenario, Load: k.load,
				Period: k.period,
				Policy: policy, At: sim.AskedAt(at), Answers: all[at],
			})
		}
	}
	return runs, nil
}
