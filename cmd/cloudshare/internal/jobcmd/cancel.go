package jobcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func cancelCommand(a *cli.App) *cobra.Command {
	var labels []string
	cmd := &cobra.Command{
		Use: "cancel ID[/TASKS]… | --label KEY=VALUE", Short: "Cancel jobs, or tasks of them",
		Long: `Cancel jobs, or tasks of them: ID/17, ID/3,17,40-60. With --label all jobs of
this broker's site that have not ended and have the label; several labels must all
hold. What has ended already, or is not known, is said and stops no other.`,
		Example: `  cloudshare cancel site-1.42
  cloudshare cancel site-1.42 site-1.43/3,5-9
  cloudshare cancel --label sweep=17`,
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) > 0) == (len(labels) > 0) {
				return fmt.Errorf("name jobs, or --label: one of them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !strings.Contains(args[0], "/") {
				return cancelJob(cmd.Context(), a, args[0])
			}
			return cancelJobs(cmd.Context(), a, args, labels)
		},
	}
	cmd.Flags().StringArrayVar(&labels, "label", nil, "cancel the open jobs with this `KEY=VALUE` (may be repeated)")
	return cmd
}

func cancelJob(ctx context.Context, a *cli.App, id string) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	job, err := c.Cancel(ctx, id)
	if err != nil {
		return err
	}
	return a.Show(job, func(w io.Writer) { cli.Row(w, job.ID, job.State) })
}

// cancelJobs cancels jobs, mostTargets at a time, and shows what became of each.
func cancelJobs(ctx context.Context, a *cli.App, jobs, labels []string) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	out := wire.Cancelled{Items: []wire.CancelledJob{}}
	if len(labels) > 0 {
		err = cancelLabelled(ctx, c, labels, &out)
	}
	for len(jobs) > 0 && err == nil {
		now := min(len(jobs), mostTargets)
		var part wire.Cancelled
		part, err = c.CancelMany(ctx, jobs[:now])
		out.Items, jobs = append(out.Items, part.Items...), jobs[now:]
	}
	if err != nil && len(out.Items) == 0 {
		return err
	}
	return cmp.Or(err, showCancelled(a, out, labels)) // what was cancelled before is shown all the same
}

// maxVain is how often the jobs with labels are asked for when no others come.
const maxVain = 3

// cancelLabelled cancels the jobs with labels until there are no others. A broker may
// name one again that takes a while to be stopped.
func cancelLabelled(ctx context.Context, c *client.Client, labels []string, out *wire.Cancelled) error {
	told := map[string]bool{}
	for vain := 0; vain < maxVain; {
		part, err := c.CancelLabelled(ctx, labels)
		if err != nil {
			return err
		}
		before := len(out.Items)
		for _, item := range part.Items {
			if !told[item.Job] {
				told[item.Job] = true
				out.Items = append(out.Items, item)
			}
		}
		switch {
		case !part.More:
			return nil
		case len(out.Items) > before:
			continue
		}
		vain++
		if err = sleep(ctx, pollMost); err != nil {
			return err
		}
	}
	return cli.WithExit(cli.ExitRefused, errors.New("there are more jobs with these labels: try again once those shown have ended"))
}

// showCancelled shows what became of each job; the error is the first one's that was
// not cancelled.
func showCancelled(a *cli.App, out wire.Cancelled, labels []string) error {
	if err := a.Show(out, func(w io.Writer) {
		for _, item := range out.Items {
			if item.Problem == nil {
				cli.Row(w, item.Job, item.State)
			}
		}
	}); err != nil {
		return err
	}
	if len(out.Items) == 0 {
		a.Note("no open job has %s", strings.Join(labels, " and "))
	}
	var first *client.Problem
	refused := 0
	for _, item := range out.Items {
		if item.Problem == nil {
			continue
		}
		refused++
		a.Note("%s: %s", item.Job, cli.Explain(item.Problem))
		if first == nil {
			first = item.Problem
		}
	}
	if first == nil {
		return nil
	}
	return cli.WithExit(cli.CodeOf(first), fmt.Errorf("%d of %d were not cancelled", refused, len(out.Items)))
}
