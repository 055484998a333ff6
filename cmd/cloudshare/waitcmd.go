package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

const (
	// mostTargets is how many jobs one request may name.
	mostTargets = 1000
	// waitOnce is how long one request waits.
	waitOnce = time.Minute
)

func (a *app) waitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait ID…", Short: "Wait until jobs have ended", Args: someJobs,
		Long: `Wait until all the jobs have ended, and show how. At most 1000 jobs.

The exit code is that of the first job, in the order given, that did not succeed:
10 failed, 11 cancelled, 12 lost, 4 not known (or ended so long ago that it is no
longer kept); 0 if all succeeded. 13: --timeout passed and some have not ended.`,
		Example: `  cloudshare wait site-1.42 site-1.43 && echo both are done
  cloudshare wait --timeout 10m $(cloudshare jobs --label sweep=17 --quiet)`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return usage("--timeout %s: must not be negative", timeout)
			}
			return a.waitMany(cmd.Context(), args, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "wait no longer, e.g. 10m; exit 13 then (default as long as it takes)")
	return cmd
}

// someJobs takes the ids of one job or more.
func someJobs(cmd *cobra.Command, args []string) error {
	if err := cobra.RangeArgs(1, mostTargets)(cmd, args); err != nil {
		return err
	}
	for _, arg := range args {
		if err := wholeJob(arg); err != nil {
			return err
		}
	}
	return nil
}

// waitMany waits for jobs and shows how they ended.
func (a *app) waitMany(ctx context.Context, ids []string, timeout time.Duration) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	last, late, err := a.awaitMany(ctx, c, ids, timeout)
	if err != nil {
		return err
	}
	if err := a.show(last, func(w io.Writer) {
		for _, item := range last.Items {
			row(w, item.Job, waitedState(item), item.Reason)
		}
	}); err != nil {
		return err
	}
	if late {
		return &exitCode{exitTimeout, fmt.Errorf("not all jobs have ended within %s", timeout)}
	}
	return waitedError(last.Items)
}

// awaitMany asks until all jobs have ended; late: the time is over before.
func (a *app) awaitMany(ctx context.Context, c *client.Client, ids []string, timeout time.Duration) (last wire.Waited, late bool, err error) {
	begin := time.Now()
	left := func() time.Duration {
		if timeout == 0 {
			return waitOnce
		}
		return min(waitOnce, timeout-time.Since(begin))
	}
	ask := func() (wire.Waited, error) {
		w, askErr := c.Wait(ctx, ids, left())
		if askErr == nil {
			askErr = awayError(w.Items)
		}
		return w, askErr
	}
	last, err = waitFor(ctx, 0, ask, func(w wire.Waited) bool {
		late = !w.Done && left() <= 0
		return w.Done || late
	})
	return last, late, err
}

// awayError is why a job cannot be asked for now; it may be possible soon.
func awayError(items []wire.WaitedJob) error {
	for _, item := range items {
		if !item.Over && item.Problem != nil {
			return item.Problem
		}
	}
	return nil
}

func waitedState(item wire.WaitedJob) string {
	if item.Problem != nil {
		return "unknown"
	}
	return item.State
}

// waitedError is the end of the first job that did not succeed.
func waitedError(items []wire.WaitedJob) error {
	for _, item := range items {
		if item.Problem != nil {
			return &exitCode{codeOf(item.Problem), fmt.Errorf("job %s: %s", item.Job, explain(item.Problem))}
		}
		if code := ends[item.State]; code != exitOK {
			return jobEnd(item.Job, item.State, item.Reason)
		}
	}
	return nil
}

// jobEnd is the end of a job that did not succeed.
func jobEnd(id, state, reason string) error {
	if reason != "" {
		reason = ": " + reason
	}
	return &exitCode{ends[state], fmt.Errorf("job %s %s%s", id, state, reason)}
}
