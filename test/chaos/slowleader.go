package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
)

const (
	// handsOverWithin a leader whose syncs are slow leads no more. One that has handed
	// over for its disk takes the leadership of no other such for 30 s.
	handsOverWithin = 45 * time.Second
	// slowSamples are submissions timed, before and after.
	slowSamples = 9
)

// slowLeader makes the leader's disk slow, less and more, while clients write.
// With two fast voters of three nobody has to wait for it.
func slowLeader(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	setting, stop := context.WithCancel(ctx)
	defer stop()
	r.setPolicies(setting)
	for i, delay := range []time.Duration{100 * time.Millisecond, time.Second} {
		if err := r.slowOne(ctx, i, delay); err != nil {
			return err
		}
	}
	return nil
}

// slowOne has another voter lead after the leader's disk became slow.
func (r *run) slowOne(ctx context.Context, i int, delay time.Duration) error {
	m := r.byName(r.leadName(ctx))
	other := rotate(r.members, r.number(m))[0]
	before, err := r.acknowledgedIn(ctx, fmt.Sprintf("before-%d", i), other, m)
	if err != nil {
		return err
	}
	r.say("each sync of %s, which leads, takes %s longer", m.Name, delay)
	if err = m.slow.set(delay); err != nil {
		return err
	}
	defer func() { _ = m.slow.set(0) }() // the run's end sets it, too
	began := time.Now()
	err = within(ctx, handsOverWithin, check.Progress, fmt.Sprintf("another leader than %s, whose syncs take %s", m.Name, delay), func() error {
		st, e := other.Status(ctx)
		if e == nil && (st.Leader == m.Name || st.Leader == "") {
			e = fmt.Errorf("%s says %q", other.Name, st.Leader)
		}
		return e
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := r.acknowledgedIn(ctx, fmt.Sprintf("after-%d", i), other, m)
	if err != nil {
		return err
	}
	r.say("another leader after %s; half of the jobs at %s were acknowledged within %s before, %s after", took.Round(time.Millisecond), other.Name, before, after)
	if after >= delay {
		return broke(check.Progress, "jobs at %s are acknowledged within %s, as if %s still led", other.Name, after, m.Name)
	}
	return nil
}

// acknowledgedIn returns the median time until a site's job for another one is
// acknowledged.
func (r *run) acknowledgedIn(ctx context.Context, name string, owner, at *member) (time.Duration, error) {
	var took []time.Duration
	for i := range slowSamples {
		began := time.Now()
		_, err := r.submit(ctx, r.number(owner), plan.Job{
			Name: fmt.Sprintf("%s-%d", name, i), Count: 1, Length: 10 * time.Millisecond, Sites: []int{r.number(at)},
		})
		if err != nil {
			return 0, err
		}
		took = append(took, time.Since(began).Round(100*time.Microsecond))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
