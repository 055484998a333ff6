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
	shortTasks   = 1000
	coresPerSite = 2
)

// measureThroughput runs 1000 × /bin/true through three sites, as one array
// and as separate jobs, beside a bare loop with as many processes at once.
func measureThroughput(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startSites(ctx, env, "throughput", siteCount, coresPerSite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for _, c := range []struct {
		name string
		run  func(context.Context, *testbed.Site) error
	}{{"one array", runArray}, {"separate jobs", runSeparate}} {
		bare, err := forkLoop(ctx, shortTasks, siteCount*coresPerSite)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := c.run(ctx, fed.Sites[0]); err != nil {
			return fmt.Errorf("run %d tasks as %s: %w", shortTasks, c.name, err)
		}
		t.add(figure{
			name: fmt.Sprintf("%d × /bin/true, %s", shortTasks, c.name), unit: "tasks/s",
			measured: shortTasks / time.Since(began).Seconds(), limit: bare,
			aim: aim{minRatio: 0.5}, peers: "Nomad 24 to 26, Slurm 26 to 56, Kubernetes 38 to 46 (of 500)",
			note: fmt.Sprintf("limit: bare fork/exec, %d at once", siteCount*coresPerSite),
		})
	}
	return nil
}

func runArray(ctx context.Context, s *testbed.Site) error {
	return runBag(ctx, s, shortTasks, "/bin/true")
}

// runBag runs n tasks of one job.
func runBag(ctx context.Context, s *testbed.Site, n int, command ...string) error {
	a, err := s.Submit(ctx, testbed.Spec{Command: command, Count: n})
	if err != nil {
		return err
	}
	_, err = s.AwaitJob(ctx, a.ID, "succeeded")
	return err
}

func runSeparate(ctx context.Context, s *testbed.Site) error {
	spec := testbed.Spec{Command: []string{"/bin/true"}, Labels: map[string]string{"bench": "separate"}}
	lines := bytes.Repeat(append(mustJSON(spec), '\n'), shortTasks)
	if n, err := s.SubmitLines(ctx, lines); err != nil || len(n) != shortTasks {
		return fmt.Errorf("submit: %d of %d accepted: %w", len(n), shortTasks, err)
	}
	return testbed.Await(ctx, "all separate jobs", func() error {
		for _, state := range []string{"queued", "running"} {
			left, err := s.Jobs(ctx, "label=bench%3Dseparate&limit=1&state="+state)
			if err != nil {
				return err
			}
			if len(left) > 0 {
				return fmt.Errorf("%s is %s", left[0].ID, state)
			}
		}
		done, err := s.Jobs(ctx, "label=bench%3Dseparate&limit=1000&state=succeeded")
		if err == nil && len(done) != shortTasks {
			err = fmt.Errorf("%d of %d succeeded", len(done), shortTasks)
		}
		return err
	})
}
