package sim

import (
	"context"
	"fmt"
	"slices"
)

// Lie is something that a site might do to wait less.
type Lie struct {
	Name string
	// tell has a site of a case do it; period is how long submissions last.
	tell func(c *Case, site int, period int64)
}

// Lies lists what is tried, beside what an honest site does: expose all cores,
// publish each job as it comes, declare true lengths as timeouts, and tell of each
// end at once.
func Lies() []Lie {
	return []Lie{
		{"declares ten times the length", conduct(func(c *Conduct, _ int64) { c.Declare = 1000 })},
		{"declares no length", conduct(func(c *Conduct, _ int64) { c.Declare = 0 })},
		{"splits each task in four", func(c *Case, site int, _ int64) { c.split(site, 4) }},
		{"reports others' ends 10 min late", conduct(func(c *Conduct, _ int64) { c.Lag = 600 })},
		{"withdraws idle cores while only others wait", conduct(func(c *Conduct, _ int64) { c.Withdraw = true })},
		{"claims nine times its cores as in its own use", func(c *Case, site int, _ int64) { c.Conduct[site].Claim = 9 * c.Cores[site] }},
		{"offers nine times its cores while nothing waits", func(c *Case, site int, _ int64) { c.Conduct[site].Boast = 8 * c.Cores[site] }},
		{"holds jobs back, as many out as it has cores", conduct(func(c *Conduct, _ int64) { c.Drip = true })},
		{"joins after half of the period", away(func(p int64) [2]int64 { return [2]int64{0, p / 2} })},
		{"leaves for the second third, and returns", away(func(p int64) [2]int64 { return [2]int64{p / 3, 2 * p / 3} })},
	}
}

// conduct makes a lie of a change of conduct.
func conduct(change func(c *Conduct, period int64)) func(*Case, int, int64) {
	return func(c *Case, site int, period int64) { change(&c.Conduct[site], period) }
}

// away makes a lie of not being there: what is released meanwhile runs at home.
func away(when func(period int64) [2]int64) func(*Case, int, int64) {
	return func(c *Case, site int, period int64) {
		conduct := &c.Conduct[site]
		conduct.Away = when(period)
		for i := range c.Tasks {
			if t := &c.Tasks[i]; t.Site == site && conduct.away(t.Release) && t.Width <= c.Cores[site] {
				t.Background = true
			}
		}
	}
}

// split makes k tasks of each of a site's, each for its part of the time.
func (c *Case) split(site int, k int64) {
	tasks := make([]Task, 0, len(c.Tasks))
	for _, t := range c.Tasks {
		run, parts := t.Run, int64(1)
		if t.Site == site && !t.Background {
			parts = min(k, run)
		}
		first := t.Index * int32(k)
		for i := range parts {
			t.Run, t.Index = run*(i+1)/parts-run*i/parts, first+int32(i)
			tasks = append(tasks, t)
		}
	}
	c.Tasks = tasks
}

// honest is the case with all sites honest.
func (c *Case) honest() *Case {
	h := *c
	h.Tasks = slices.Clone(c.Tasks)
	h.Conduct = make([]Conduct, len(c.Cores))
	for i := range h.Conduct {
		h.Conduct[i].Declare = 100
	}
	return &h
}

// told is the case in which some sites lie.
func (c *Case) told(l *Lie, liars Coalition, period int64) *Case {
	t := c.honest()
	for site := range c.Cores {
		if liars.Has(site) {
			l.tell(t, site, period)
		}
	}
	return t
}

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
		return fmt.Errorf("%w: %d liars among %d sites, want 1 to %d", ErrBadCase, liars, s.Setup.Sites, s.Setup.Sites)
	}
	keys := s.keys()
	return each(ctx, workers, keys, nil, func(ctx context.Context, i int) ([]Gain, error) { return s.gains(ctx, i, keys[i], liars) },
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
		honest := in.honest()
		out, err := PlayContext(ctx, honest)
		if err != nil {
			return nil, err
		}
		own, others := ownAndOthers(honest, out, liars, &in.Case)
		for l, lie := range Lies() {
			told := in.told(&lie, liars, s.Setup.Period)
			out, err := PlayContext(ctx, told)
			if err != nil {
				return nil, fmt.Errorf("instance %d, sites %b: %s, %s: %w", index, liars, lie.Name, policy, err)
			}
			g := Gain{Log: s.Workloads[k.workload].Name, Period: k.period, Lie: l, Policy: p, Own: own, Others: others}
			g.OwnLying, g.OthersLying = ownAndOthers(told, out, liars, &in.Case)
			gains = append(gains, g)
		}
	}
	return gains, nil
}

// liars draws the sites that lie in an instance.
func (s *Study) liars(index int, c *Case, n int) (liars Coalition) {
	var sites []int
	for site := range c.Cores {
		if slices.ContainsFunc(c.Tasks, func(t Task) bool { return t.Site == site && !t.Background }) {
			sites = append(sites, site)
		}
	}
	d := keyed(s.Setup.Seed, 9, uint64(index))
	for range min(n, len(sites)) {
		i := d.below(int64(len(sites)))
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
func ownAndOthers(c *Case, out *Outcome, liars Coalition, before *Case) (own, others int64) {
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
