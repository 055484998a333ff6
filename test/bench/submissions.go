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
	bare, err := measureBareRaft(ctx, env)
	if err != nil {
		return err
	}
	fed, err := startSites(ctx, env, "submissions", 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	if err := occupy(ctx, fed.Sites[2]); err != nil {
		return err
	}
	spec := testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{fed.Sites[2].Name}}}
	for i, n := range clientCounts {
		rate, err := countInWindow(ctx, n, window, func(c int) (int, error) {
			return submitOne(ctx, fed.Sites[c%len(fed.Sites)], spec)
		})
		if err != nil {
			return fmt.Errorf("submit singles with %d clients: %w", n, err)
		}
		f := figure{
			name: fmt.Sprintf("submissions, singles, %d clients", n), measured: rate,
			limit: bare[i], unit: "jobs/s", note: "limit: bare raft Apply loop",
		}
		if n == 64 {
			f.aim = aim{minRatio: 0.7}
		}
		t.add(f)
	}
	return submitBulk(ctx, fed, spec, t)
}

func submitBulk(ctx context.Context, fed *testbed.Federation, spec testbed.Spec, t *table) error {
	lines := repeatLine(spec, linesPerRequest)
	for _, n := range clientCounts {
		rate, err := countInWindow(ctx, n, window, func(c int) (int, error) {
			return submitLines(ctx, fed.Sites[c%len(fed.Sites)], lines)
		})
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

func submitOne(ctx context.Context, s *testbed.Site, spec testbed.Spec) (int, error) {
	a, err := s.Submit(ctx, spec)
	if err != nil {
		return 0, err
	}
	return 1, committed(a)
}

func submitLines(ctx context.Context, s *testbed.Site, lines []byte) (int, error) {
	answers, err := s.SubmitLines(ctx, lines)
	if err != nil {
		return 0, err
	}
	for _, a := range answers {
		if err := committed(a); err != nil {
			return 0, err
		}
	}
	return len(answers), nil
}

// committed: a figure of commits must not count what one disk holds.
func committed(a testbed.Accepted) error {
	if a.ID == "" || a.Durability != "federation" {
		return fmt.Errorf("job %q was acknowledged with durability %q (%s %s)", a.ID, a.Durability, a.State, a.Reason)
	}
	return nil
}

func repeatLine(spec testbed.Spec, n int) []byte {
	return bytes.Repeat(append(mustJSON(spec), '\n'), n)
}

// occupy takes all cores of a site (one) until the federation ends.
func occupy(ctx context.Context, s *testbed.Site) error {
	a, err := s.Submit(ctx, testbed.Spec{
		Command: []string{"sleep", "900"}, Sites: &testbed.Where{Only: []string{s.Name}},
	})
	if err != nil {
		return fmt.Errorf("occupy %s: %w", s.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if _, err := s.AwaitJob(ctx, a.ID, "running"); err != nil {
		return fmt.Errorf("occupy %s: %w", s.Name, err)
	}
	return nil
}
