package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// tesImage is of both kinds of submissions.
const tesImage = "registry.example/workflow/step:1"

// tesClients create tasks at a time.
var tesClients = []int{1, 64}

// tesTurns of each kind and number of clients: short ones, since what else the machine does lasts for seconds.
const tesTurns = 3

// tesWindow of one turn.
func tesWindow(env environment) time.Duration {
	return pick(env, 800*time.Millisecond, 300*time.Millisecond)
}

// measureTES counts tasks that are created a second as workflow engines do it, one a request, in turns with
// submissions of equal jobs in the same federation. No site may run them.
func measureTES(ctx context.Context, env environment, t *table) (err error) {
	bare, err := openBareRaft(env, "bare-tes")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	fed, err := startSites(ctx, env, "tes", siteCount, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	for _, n := range tesClients {
		limit, err := countInWindow(ctx, n, tesWindow(env),
			func(int) (int, error) { return 1, bare.Apply(make([]byte, entryBytes)) })
		if err != nil {
			return err
		}
		native, created, err := takeTESTurns(ctx, env, fed, n)
		if err != nil {
			return fmt.Errorf("%d clients: %w", n, err)
		}
		t.add(figure{
			name: fmt.Sprintf("submissions of jobs with an image, singles, %d clients", n), unit: "jobs/s",
			measured: median(native.rates), limit: limit,
			note: fmt.Sprintf("limit: bare raft Apply loop; %s ms of the brokers' processor time a job", number(median(native.cpu))),
		})
		t.add(figure{
			name: fmt.Sprintf("TES tasks created, %d clients", n), unit: "tasks/s",
			measured: median(created.rates), limit: median(native.rates), aim: aim{minRatio: 0.6},
			note: fmt.Sprintf("limit: submissions of equal jobs, in turns; %s ms of the brokers' processor time a task",
				number(median(created.cpu))),
		})
	}
	return nil
}

// equalJobs are a job, and the task that becomes such a job.
func equalJobs() (job, task []byte) {
	command, labels := []string{"/bin/sh", "-c", "sort /data/in > /data/out"}, map[string]string{"run": "r-1", "rule": "sort"}
	job = mustJSON(map[string]any{
		"name": "sort", "image": tesImage, "command": command, "labels": labels, "resources": map[string]any{"cpu": 1, "memory": "1024Mi"},
		"sites": testbed.Where{Only: []string{nowhere}},
	})
	task = mustJSON(map[string]any{
		"name": "sort", "executors": []map[string]any{{"image": tesImage, "command": command}}, "tags": labels,
		"resources": map[string]any{"cpu_cores": 1, "ram_gb": 1, "zones": []string{nowhere}},
	})
	return job, task
}

// creating is one of the two ways.
type creating struct {
	path string
	body []byte
	done []byte // stands in an answer to a request that was accepted
	// of each turn: how many a second, and ms of the brokers' processor time each
	rates, cpu []float64
}

// takeTESTurns has both ways take turns, every other time the other way round: the queue grows for both alike.
func takeTESTurns(ctx context.Context, env environment, fed *testbed.Federation, clients int) (
	native, created *creating, err error,
) {
	job, task := equalJobs()
	native = &creating{path: "/v1/jobs", body: job, done: []byte(`"federation"`)}
	created = &creating{path: "/ga4gh/tes/v1/tasks", body: task, done: []byte(`"id"`)}
	order := []*creating{native, created}
	for range pick(env, tesTurns, 1) {
		for _, c := range order {
			if err := c.turn(ctx, fed, clients, tesWindow(env)); err != nil {
				return nil, nil, fmt.Errorf("POST %s: %w", c.path, err)
			}
		}
		slices.Reverse(order)
	}
	return native, created, nil
}

// turn has the clients send one request after the other for a while.
func (c *creating) turn(ctx context.Context, fed *testbed.Federation, clients int, d time.Duration) error {
	lanes, err := dialLanesTo(ctx, fed, clients, c.path, "application/json", c.body, bySite(fed))
	if err != nil {
		return err
	}
	defer closeLanes(lanes)
	before, err := brokerTimeOf(fed)
	if err != nil {
		return err
	}
	began := time.Now()
	rate, err := countInWindow(ctx, clients, d, func(n int) (int, error) {
		answer, failed := lanes[n].post()
		if failed == nil && !bytes.Contains(answer, c.done) {
			failed = fmt.Errorf("answered %.300s", answer)
		}
		return 1, failed
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := brokerTimeOf(fed)
	c.rates = append(c.rates, rate)
	c.cpu = append(c.cpu, float64(after-before)/float64(time.Millisecond)/(rate*took.Seconds()))
	return err
}
