package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// listLanes clients fill the queue; the jobs of each carry a label of its own.
const listLanes = 10

// measureLists asks one broker for pages of a very long list, for one job, and
// why it waits, while a million jobs wait. No site may run them.
func measureLists(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startSites(ctx, env, "lists", siteCount, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	return measurePages(ctx, t, fed, pick(env, 1_000_000, 20_000), pick(env, 200, 20))
}

func measurePages(ctx context.Context, t *table, fed *testbed.Federation, waiting, requests int) error {
	if err := fillQueue(ctx, fed, waiting); err != nil {
		return fmt.Errorf("fill the queue: %w", err)
	}
	if err := addMemory(ctx, t, fed, fmt.Sprintf("%d jobs wait", waiting), "", "each a job of its own"); err != nil {
		return err
	}
	s := fed.Sites[0]
	newest, err := s.Jobs(ctx, "limit=1")
	if err != nil || len(newest) == 0 {
		return errors.Join(err, fmt.Errorf("%s lists %d jobs", s.Name, len(newest)))
	}
	for _, c := range []struct{ name, path string }{
		{"one job", "/v1/jobs/" + newest[0].ID},
		{"why the last one waits", "/v1/jobs/" + newest[0].ID + "/why"},
		{"newest 100", "/v1/jobs?limit=100"},
		{"100 by state", "/v1/jobs?limit=100&state=queued"},
		{"100 by site", "/v1/jobs?limit=100&site=" + s.Name},
		{"100 by label, one in ten has it", "/v1/jobs?limit=100&label=lane%3D3"},
		{"100 by state, none is in it", "/v1/jobs?limit=100&state=running"},
		{"100 by label, none has it", "/v1/jobs?limit=100&label=lane%3Dnone"},
		{"100 by name, none has it", "/v1/jobs?limit=100&name=nothing"},
	} {
		if err := addRequests(ctx, t, s, fmt.Sprintf("%d jobs wait: %s", waiting, c.name), c.path, requests); err != nil {
			return err
		}
	}
	return nil
}

// fillQueue submits n waiting jobs, spread over the brokers.
func fillQueue(ctx context.Context, fed *testbed.Federation, n int) error {
	lanes := make([]*lane, 0, listLanes)
	defer func() { closeLanes(lanes) }()
	for i := range listLanes {
		spec := waitingSpec
		spec.Labels = map[string]string{"lane": fmt.Sprint(i)}
		body := bytes.Repeat(append(mustJSON(spec), '\n'), linesPerRequest)
		site := fed.Sites[i%len(fed.Sites)]
		l, err := dialLane(ctx, site, "application/x-ndjson", body, site.Authorize)
		if err != nil {
			return err
		}
		lanes = append(lanes, l)
	}
	_, err := countTo(ctx, listLanes, n/linesPerRequest,
		func(c int) (int, error) { return lanes[c].postJobs(linesPerRequest) })
	return err
}

// addRequests times n requests, one after the other over one connection.
func addRequests(ctx context.Context, t *table, s *testbed.Site, name, path string, n int) error {
	var took sample
	for i := range warmUps + n {
		began := time.Now()
		if _, _, err := s.Do(ctx, http.MethodGet, path, nil, nil); err != nil {
			return fmt.Errorf("time %s: %w", path, err)
		}
		if i >= warmUps {
			took = append(took, time.Since(began))
		}
	}
	for _, q := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		t.add(figure{name: name + ", " + q.name, measured: took.quantile(q.q), unit: "ms"})
	}
	return nil
}
