package jobcmd

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func cancelCommand(a *cli.App) *cobra.Command {
	var which selection
	cmd := &cobra.Command{
		Use: "cancel ID[/TASKS]… | --label KEY=VALUE | --mine | --user USER", Short: "Cancel jobs, or tasks of them",
		Long: `Cancel jobs, or tasks of them: ID/17, ID/3,17,40-60. With --label all jobs of
this broker's site that have not ended and have the label; several labels must all
hold. With --mine all of yours, with --user, for the operator, all of a user's; labels
select among these. What has ended already, or is not known, is said and stops no other.`,
		Example: `  cloudshare cancel site-1.42
  cloudshare cancel site-1.42 site-1.43/3,5-9
  cloudshare cancel --label sweep=17
  cloudshare cancel --mine
  cloudshare cancel --user alice`,
		Args: which.check,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !strings.Contains(args[0], "/") {
				return cancelJob(cmd.Context(), a, args[0])
			}
			return cancelJobs(cmd.Context(), a, args, which)
		},
	}
	which.addFlags(cmd, "cancel")
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
func cancelJobs(ctx context.Context, a *cli.App, jobs []string, which selection) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	out := wire.Cancelled{Items: []wire.CancelledJob{}}
	if which.given() {
		err = which.cancel(ctx, c, &out)
	}
	if err == nil {
		err = inParts(jobs, func(some []string) error {
			part, failed := c.CancelMany(ctx, some)
			out.Items = append(out.Items, part.Items...)
			return failed
		})
	}
	if err != nil && len(out.Items) == 0 {
		return err
	}
	return cmp.Or(err, showCancelled(a, out, which)) // what was cancelled before is shown all the same
}

// showCancelled shows what became of each job; the error is the first one's that was
// not cancelled.
func showCancelled(a *cli.App, out wire.Cancelled, which selection) error {
	if err := a.Show(out, func(w io.Writer) {
		for _, item := range out.Items {
			if item.Problem == nil {
				cli.Row(w, item.Job, item.State)
			}
		}
	}); err != nil {
		return err
	}
	no := refusals{app: a}
	for _, item := range out.Items {
		no.add(item.Job, item.Problem)
	}
	if which.given() {
		a.Note("%s", which.says(len(out.Items)-no.count))
	}
	return no.err(len(out.Items), "cancelled")
}
