package jobcmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

const (
	// mostTargets is how many jobs one request may name.
	mostTargets = 1000
	// waitOnce is how long one request waits.
	waitOnce = time.Minute
)

func waitCommand(a *cli.App) *cobra.Command {
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
				return cli.Usage("--timeout %s: must not be negative", timeout)
			}
			return waitForMany(cmd.Context(), a, args, timeout)
		},
	}
	cli.DurationVar(cmd.Flags(), &timeout, "timeout", 0, "wait no longer, e.g. 10m; exit 13 then (default as long as it takes)")
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

// waitForMany waits for jobs and shows how they ended.
func waitForMany(ctx context.Context, a *cli.App, ids []string, timeout time.Duration) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	last, late, err := awaitMany(ctx, c, ids, timeout)
	if err != nil {
		return err
	}
	if err := a.Show(last, func(w io.Writer) {
		for _, item := range last.Items {
			cli.Row(w, item.Job, waitedState(item), item.Reason)
		}
	}); err != nil {
		return err
	}
	if late {
		return cli.WithExit(cli.ExitTimeout, fmt.Errorf("not all jobs have ended within %s", timeout))
	}
	return waitedError(last.Items)
}

// awaitMany asks until all jobs have ended; late: the time is over before.
func awaitMany(
	ctx context.Context, c *client.Client, ids []string, timeout time.Duration,
) (last wire.Waited, late bool, err error) {
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
		if askErr != nil && timeout > 0 && left() <= 0 { // nobody is waited for any longer
			askErr = cli.WithExit(cli.CodeOf(askErr), fmt.Errorf("within %s: %s", timeout, cli.Explain(askErr)))
		}
		return w, askErr
	}
	last, err = waitFor(ctx, 0, ask, func(w wire.Waited) bool {
		late = !w.Done && left() <= 0
		return w.Done || late
	})
	return last, late, err
}

// awayError returns why a job cannot be asked for now; it may be possible soon.
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

// waitedError returns the end of the first job that did not succeed.
func waitedError(items []wire.WaitedJob) error {
	for _, item := range items {
		if item.Problem != nil {
			return cli.WithExit(cli.CodeOf(item.Problem), fmt.Errorf("job %s: %s", item.Job, cli.Explain(item.Problem)))
		}
		if code := cli.EndCodes[item.State]; code != cli.ExitOK {
			return jobEnd(item.Job, item.State, item.Reason)
		}
	}
	return nil
}

// jobEnd returns the end of a job that did not succeed.
func jobEnd(id, state, reason string) error {
	if reason != "" {
		reason = ": " + reason
	}
	return cli.WithExit(cli.EndCodes[state], fmt.Errorf("job %s %s%s", id, state, reason))
}
