package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	// placeWithin a leader that is far from the majority leads no more.
	placeWithin = 4 * time.Minute
	// placeKept is how long the next one is watched.
	placeKept = time.Minute
)

// atEachLayout measures at each layout, at which the leader has to stay where it was laid: one that is far from the
// majority does for some two minutes.
func atEachLayout(ctx context.Context, env environment, t *table, measure func(context.Context, *scene) error) error {
	return eachScene(ctx, env, t, farLayouts(env), func(ctx context.Context, sc *scene) error {
		if err := measure(ctx, sc); err != nil {
			return err
		}
		now, _, err := leadAndOthers(ctx, &sc.Federation)
		if err == nil && now != sc.leader {
			err = fmt.Errorf("%s leads now, no longer %s: its figures are no layout's", now.Name, sc.leader.Name)
		}
		return err
	})
}

// measureFarPlace lays the links so that the leader is far from the majority, and times until one that is near leads,
// and what an acknowledgement takes before and after.
func measureFarPlace(ctx context.Context, env environment, t *table) error {
	n := farCount(env)
	if env.quick {
		fmt.Fprintf(env.notes, "far-place: nothing is measured: with %d sites no majority is near\n", n)
		return nil
	}
	return eachScene(ctx, env, t, []layout{mixLayout(n, mixFar, n-1)}, func(ctx context.Context, sc *scene) error {
		return sc.place(ctx)
	})
}

func (sc *scene) place(ctx context.Context) error {
	began := time.Now()
	if err := sc.acknowledged(ctx, "follower, 1 client, far leader, p50", sc.leader); err != nil {
		return err
	}
	next, err := sc.awaitNearLeader(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began)
	sc.add("far leader → a near one leads", figure{
		measured: took.Seconds(), unit: "s", note: next.Name + ": " + whyThere(ctx, next),
	})
	st, err := sc.follower.Status(ctx)
	if err != nil {
		return err
	}
	changes, looks := 0, 0
	for end := time.Now().Add(placeKept); time.Now().Before(end); looks++ {
		now, err := sc.follower.Status(ctx)
		if err != nil {
			return err
		}
		if now.Term != st.Term || now.Leader != next.Name {
			changes++
		}
		if err = pause(ctx, time.Second); err != nil {
			return err
		}
	}
	sc.add("looks at another leader, in a minute", figure{measured: float64(changes), note: fmt.Sprintf("%d looks", looks)})
	if changes > 0 {
		return fmt.Errorf("%s took the leadership over, and does not keep it", next.Name)
	}
	return sc.acknowledged(ctx, "follower, 1 client, near leader, p50", next)
}

// acknowledged times one client at a site that is near the majority and does not lead.
func (sc *scene) acknowledged(ctx context.Context, row string, leader *testbed.Site) error {
	at := sc.follower
	if at == leader {
		at = sc.executor
	}
	single, err := sc.timed(ctx, at, 1, 12)
	if err != nil {
		return err
	}
	limit := ms(sc.paths.submitted(sc.number(at), sc.number(leader)))
	sc.add(row, figure{measured: single.took.quantile(0.5), limit: limit, unit: "ms"})
	return nil
}

// whyThere is what a leader says of its place.
func whyThere(ctx context.Context, leader *testbed.Site) string {
	st, err := leader.Status(ctx)
	if err != nil {
		return err.Error()
	}
	return st.LeaderWhy
}

// awaitNearLeader waits until a leader is known whose majority is nearer than half as far as the one that led.
func (sc *scene) awaitNearLeader(ctx context.Context) (*testbed.Site, error) {
	var next *testbed.Site
	ctx, cancel := context.WithTimeout(ctx, placeWithin)
	defer cancel()
	err := testbed.Await(ctx, "a leader that is near", func() error {
		now, _, err := leadAndOthers(ctx, &sc.Federation)
		if err == nil && 2*sc.paths.commit(sc.number(now)) > sc.paths.commit(sc.number(sc.leader)) {
			err = fmt.Errorf("%s leads: %s", now.Name, whyThere(ctx, now))
		}
		next = now
		return err
	})
	return next, err
}
