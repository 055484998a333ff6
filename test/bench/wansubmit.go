package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// measureFarSubmissions times acknowledgements that the federation has committed, at a follower and at the leader.
func measureFarSubmissions(ctx context.Context, env environment, t *table) error {
	return atEachLayout(ctx, env, t, func(ctx context.Context, sc *scene) error {
		return sc.submissions(ctx)
	})
}

// submissions of one layout.
func (sc *scene) submissions(ctx context.Context) error {
	twice := aim{maxRatio: 1.1}
	limit := ms(sc.submitted(sc.follower))
	if _, err := sc.timed(ctx, sc.follower, 4, 1); err != nil { // warms up
		return err
	}
	single, err := sc.timed(ctx, sc.follower, 1, 12)
	if err != nil {
		return err
	}
	sc.add("follower, 1 client, p50", figure{measured: single.took.quantile(0.5), limit: limit, unit: "ms", aim: twice})
	if sc.far != nil {
		if single, err = sc.timed(ctx, sc.far, 1, 12); err != nil {
			return err
		}
		least := ms(sc.submitted(sc.far))
		sc.add("the far site, 1 client, p50", figure{measured: single.took.quantile(0.5), limit: least, unit: "ms"})
	}
	many, err := sc.timed(ctx, sc.follower, 64, 3)
	if err != nil {
		return err
	}
	sc.add("follower, 64 clients", figure{measured: many.rate, unit: "jobs/s"})
	sc.add("follower, 64 clients, p50", figure{measured: many.took.quantile(0.5), limit: limit, unit: "ms", aim: twice})
	if many, err = sc.timed(ctx, sc.leader, 64, 3); err != nil {
		return err
	}
	sc.add("leader, 64 clients, p50", figure{measured: many.took.quantile(0.5), limit: ms(sc.submitted(sc.leader)), unit: "ms", aim: twice})
	return sc.lines(ctx, limit)
}

// lines sends requests of many jobs.
func (sc *scene) lines(ctx context.Context, limit float64) error {
	body := bytes.Repeat(append(mustJSON(waitingSpec), '\n'), linesPerRequest)
	got, err := sc.post(ctx, sc.follower, 1, pick(sc.env, 11, 3), "application/x-ndjson", body, linesPerRequest)
	if err != nil {
		return fmt.Errorf("NDJSON: %w", err)
	}
	sc.add(fmt.Sprintf("NDJSON of %d, p50", linesPerRequest), figure{
		measured: got.took.quantile(0.5), limit: limit, unit: "ms",
		note: fmt.Sprintf("%s to %s", number(got.took.quantile(0)), number(got.took.quantile(1))),
	})
	return nil
}

// timed has clients submit jobs that wait at no site, at one broker.
func (sc *scene) timed(ctx context.Context, at *testbed.Site, clients, least int) (timedPosts, error) {
	got, err := sc.post(ctx, at, clients, least, "application/json", mustJSON(waitingSpec), 1)
	if err != nil {
		return got, fmt.Errorf("%d clients at %s: %w", clients, at.Name, err)
	}
	return got, nil
}

// timedPosts are answers of a while.
type timedPosts struct {
	rate float64 // jobs a second
	took sample
}

// farWindow is how long clients submit, at least.
func farWindow(env environment) time.Duration { return pick(env, 4*time.Second, 400*time.Millisecond) }

// post has each client send the body, of so many jobs, for one window, and at least so often.
func (sc *scene) post(ctx context.Context, at *testbed.Site, clients, least int, kind string, body []byte, jobs int,
) (timedPosts, error) {
	one := &testbed.Federation{Sites: []*testbed.Site{at}}
	lanes, err := dialLanes(ctx, one, clients, kind, body)
	if err != nil {
		return timedPosts{}, err
	}
	defer closeLanes(lanes)
	var mu sync.Mutex
	var out timedPosts
	made, began := make([]int, clients), time.Now()
	window := farWindow(sc.env)
	out.rate, err = countWhileEach(ctx, clients, func(c int) bool {
		made[c]++
		return made[c] <= least || time.Since(began) < window
	}, func(c int) (int, error) {
		sent := time.Now()
		n, cause := lanes[c].postJobs(jobs)
		mu.Lock()
		defer mu.Unlock()
		out.took = append(out.took, time.Since(sent))
		return n, cause
	})
	return out, err
}
