package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/netlab"
)

const (
	// nearWithin a leader that is far from the majority leads no more: half a minute until it has measured that its
	// ways are longer now, half a minute in which it stays so, and the looks and answers between.
	nearWithin = 2 * time.Minute
	// nearFor is how long the next one is watched: longer than it takes to hand over again.
	nearFor = 45 * time.Second
)

// farLeader puts the leader far from all others while clients write: one that is near a majority leads instead, and
// goes on leading.
func farLeader(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	setting, stop := context.WithCancel(ctx)
	defer stop()
	r.setPolicies(setting)
	old := r.byName(r.leadName(ctx))
	if err := r.moveAway(old); err != nil {
		return err
	}
	r.say("%s, which leads, is 150 ms from all others now", old.Name)
	began, next := time.Now(), ""
	err := within(ctx, nearWithin, check.Progress, "a near leader, not "+old.Name, func() error {
		if next = r.leadName(ctx); next == "" || next == old.Name || !r.isNear(old, next) {
			return fmt.Errorf("%q leads", next)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.say("%s leads after %s", next, time.Since(began).Round(time.Second))
	for kept := time.Now(); time.Since(kept) < nearFor; {
		if now := r.leadName(ctx); now != "" && now != next {
			return broke(check.Progress, "%s leads, %s did since it was near the majority, for %s", now, next, time.Since(kept))
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// placesAround returns the place of each member of a mix whose last one is m.
func (r *run) placesAround(m *member) []int {
	var places []int
	last := len(r.members) - 1
	for i, other := range r.members {
		place := i
		if other == m {
			place = last
		} else if i == last {
			place = r.number(m) - 1
		}
		places = append(places, place)
	}
	return places
}

// moveAway puts the sites in different places, one of them at 150 ms of all others.
func (r *run) moveAway(m *member) error {
	mix, places := netlab.MixedRoundTrips(len(r.members)), r.placesAround(m)
	times := netlab.EvenRoundTrips(len(r.members), 0)
	for i := range times {
		for j := range times {
			times[i][j] = mix.Between(places[i]+1, places[j]+1)
		}
	}
	return r.lab.SetRoundTrips(r.seed, times, farRest)
}

// isNear reports whether a site is one of those within 10 ms when m is far.
func (r *run) isNear(m *member, site string) bool {
	return r.placesAround(m)[r.number(r.byName(site))-1] < len(r.members)-2
}
