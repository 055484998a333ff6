package study

import (
	"context"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node/sim"
)

// Gain is what a lie came to in one instance.
type Gain struct {
	Log    string
	Period int
	Lie    int // position in Lies
	Policy int // position in the study's contestants without the ceiling
	// Waits of the work of the liars and of all others, in half core-seconds·seconds;
	// if they are honest, and if they lie.
	Own, OwnLying, Others, OthersLying int64
}

// Incentives has, in every instance, some sites lie alike, in each way under each policy,
// and calls save for what came of it, one call at a time, in no order. The liars are drawn
// among the sites that have tasks of the federation; if these are fewer, all of them
// lie. It ends with the first error, or with ctx.
func (s *Study) Incentives(ctx context.Context, liars, workers int, save func([]Gain)) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if liars < 1 || liars > s.Setup.Sites {
		return fmt.Errorf("%w: %d liars among %d sites, want 1 to %d", sim.ErrBadCase, liars, s.Setup.Sites, s.Setup.Sites)
	}
	keys := s.keys()
	return each(ctx, workers, keys, nil, func(ctx context.Context, i int) ([]Gain,
		error,
	) {
		return s.gains(ctx, i, keys[i], liars)
	},
		func(gains []Gain) error {
			save(gains)
			return nil
		})
}

// gains plays one instance.
func (s *Study) gains(ctx context.Context, index int, k key, n int) (gains []Gain, err error) {
	in, _, err := s.instance(k)
	if err != nil {
		return nil, err
	}
	liars := s.liars(index, &in.Case, n)
	if liars == 0 {
		return nil, nil
	}
	for p, policy := range append(slices.Clone(s.Policies), s.Beyond...) {
		in.Params.Policy, in.Params.ClaimedHome = policy, false // as it is live: what is asked is what lies gain there
		truth := in.Honest()
		out, err := sim.PlayContext(ctx, truth)
		if err != nil {
			return nil, err
		}
		own, others := ownAndOthers(truth, out, liars, &in.Case)
		for l, lie := range sim.Lies() {
			lied := lie.Told(&in.Case, liars, s.Setup.Period)
			out, err := sim.PlayContext(ctx, lied)
			if err != nil {
				return nil, fmt.Errorf("instance %d, sites %b: %s, %s: %w", index, liars, lie.Name, policy, err)
			}
			g := Gain{Log: s.Workloads[k.workload].Name, Period: k.period, Lie: l, Policy: p, Own: own, Others: others}
			g.OwnLying, g.OthersLying = ownAndOthers(lied, out, liars, &in.Case)
			gains = append(gains, g)
		}
	}
	return gains, nil
}

// liars draws the sites that lie in an instance.
func (s *Study) liars(index int, c *sim.Case, n int) (liars sim.Coalition) {
	var sites []int
	for site := range c.Cores {
		if slices.ContainsFunc(c.Tasks, func(t sim.Task) bool { return t.Site == site && !t.Background }) {
			sites = append(sites, site)
		}
	}
	d := sim.NewKeyedRand(s.Setup.Seed, 9, uint64(index))
	for range min(n, len(sites)) {
		i := d.Below(int64(len(sites)))
		liars |= 1 << sites[i]
		sites = slices.Delete(sites, int(i), int(i)+1)
	}
	return liars
}

// ownAndOthers sums the waits of work: of the liars' tasks, and of all others'. What
// was background before the lie does not count.
//
// A unit of work waits from its release until it is done, less what it would take
// if its task ran at once: (s−r) for each of a task's. The parts of a split task are measured
// by the whole: with w = width·run, Σ w(s−r) = Σ w(s + run/2 − r) − Σ w·run/2, the last
// over whole tasks. Doubled, that is whole.
func ownAndOthers(c *sim.Case, out *sim.Outcome, liars sim.Coalition, before *sim.Case) (own, others int64) {
	for i := range before.Tasks {
		if t := &before.Tasks[i]; liars.Has(t.Site) && !t.Background {
			own -= t.Width * t.Run * t.Run
		}
	}
	for i := range c.Tasks {
		t := &c.Tasks[i]
		local := t.Background
		if len(c.Tasks) == len(before.Tasks) { // else it was split, and what is background stayed so
			local = before.Tasks[i].Background
		}
		work, wait := t.Width*t.Run, out.Start[i]-t.Release
		switch {
		case local:
		case liars.Has(t.Site):
			own += work * (2*wait + t.Run)
		default:
			others += work * 2 * wait
		}
	}
	return own, others
}
