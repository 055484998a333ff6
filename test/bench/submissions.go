package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	// window of one submission figure and of its bare loop.
	window = 3 * time.Second
	// linesPerRequest of the NDJSON figures.
	linesPerRequest = 1000
)

// clientCounts at which submissions are measured.
var clientCounts = []int{1, 16, 64}

// measureSubmissions counts acknowledged jobs a second. The jobs may only run
// at a site whose cores are taken, so that nothing starts in the window and
// every acknowledgement is a commit by the federation. Client n talks to the
// n-th broker, in turn.
func measureSubmissions(ctx context.Context, env environment, t *table) (err error) {
	bare, err := openBareRaft(env, "bare-submissions")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	fed, err := startSites(ctx, env, "submissions", siteCount, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	if _, err := occupy(ctx, fed.Sites[2], 1); err != nil {
		return err
	}
	spec := testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{fed.Sites[2].Name}}}
	one := mustJSON(spec)
	entry := make([]byte, entryBytes)
	for _, n := range clientCounts {
		limit, err := countInWindow(ctx, n, window, func(int) (int, error) { return 1, bare.Apply(entry) })
		if err != nil {
			return err
		}
		rate, err := submitFor(ctx, fed, n, "application/json", one, 1)
		if err != nil {
			return fmt.Errorf("submit singles with %d clients: %w", n, err)
		}
		f := figure{
			name: fmt.Sprintf("submissions, singles, %d clients", n), measured: rate,
			limit: limit, unit: "jobs/s", note: "limit: bare raft Apply loop",
		}
		if n == 64 {
			f.aim = aim{minRatio: 0.7}
		}
		t.add(f)
	}
	many := bytes.Repeat(append(one, '\n'), linesPerRequest)
	for _, n := range clientCounts {
		rate, err := submitFor(ctx, fed, n, "application/x-ndjson", many, linesPerRequest)
		if err != nil {
			return fmt.Errorf("submit NDJSON with %d clients: %w", n, err)
		}
		t.add(figure{
			name:     fmt.Sprintf("submissions, NDJSON of %d, %d clients", linesPerRequest, n),
			measured: rate, unit: "jobs/s", aim: aim{atLeast: 50_000},
		})
	}
	return nil
}

// submitFor has n clients post the body, of so many jobs, for one window.
func submitFor(ctx context.Context, fed *testbed.Federation, n int, contentType string, body []byte, jobs int) (float64, error) {
	lanes, err := dialLanes(ctx, fed, n, contentType, body)
	if err != nil {
		return 0, err
	}
	defer closeLanes(lanes)
	return countInWindow(ctx, n, window, func(c int) (int, error) { return lanes[c].postJobs(jobs) })
}

// occupy takes so many cores of a site until the returned job is cancelled or
// the federation ends.
func occupy(ctx context.Context, s *testbed.Site, cores int) (string, error) {
	a, err := s.Submit(ctx, testbed.Spec{
		Command: []string{"sleep", "900"}, Count: cores, Sites: &testbed.Where{Only: []string{s.Name}},
	})
	if err != nil {
		return "", fmt.Errorf("occupy %s: %w", s.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = testbed.Await(ctx, "all cores of "+s.Name, func() error {
		job, e := s.Job(ctx, a.ID)
		if e == nil && job.Counts["running"] != cores {
			e = fmt.Errorf("job %s has tasks %v", a.ID, job.Counts)
		}
		return e
	})
	return a.ID, err
}
