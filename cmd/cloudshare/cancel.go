package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

func (a *app) cancelCommand() *cobra.Command {
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
				return a.cancelOne(cmd.Context(), args[0])
			}
			return a.cancelMany(cmd.Context(), args, labels)
		},
	}
	cmd.Flags().StringArrayVar(&labels, "label", nil, "cancel the open jobs with this `KEY=VALUE` (may be repeated)")
	return cmd
}

func (a *app) cancelOne(ctx context.Context, id string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	job, err := c.Cancel(ctx, id)
	if err != nil {
		return err
	}
	return a.show(job, func(w io.Writer) { row(w, job.ID, job.State) })
}

// cancelMany cancels jobs, mostTargets at a time, and shows what became of each.
func (a *app) cancelMany(ctx context.Context, jobs, labels []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	out := wire.Cancelled{Items: []wire.CancelledJob{}}
	for more := true; more; {
		var part wire.Cancelled
		if len(labels) > 0 {
			part, err = c.CancelLabelled(ctx, labels)
			more = part.More && cancelledAny(part.Items) // or it would go on for ever
		} else {
			now := min(len(jobs), mostTargets)
			part, err = c.CancelMany(ctx, jobs[:now])
			jobs = jobs[now:]
			more = len(jobs) > 0
		}
		if err != nil {
			return err
		}
		out.Items = append(out.Items, part.Items...)
	}
	return a.showCancelled(out, labels)
}

// cancelledAny reports whether one of the jobs was cancelled.
func cancelledAny(items []wire.CancelledJob) bool {
	for i := range items {
		if items[i].Problem == nil {
			return true
		}
	}
	return false
}

// showCancelled shows what became of each job; the error is the first one's that was
// not cancelled.
func (a *app) showCancelled(out wire.Cancelled, labels []string) error {
	if err := a.show(out, func(w io.Writer) {
		for _, item := range out.Items {
			if item.Problem == nil {
				row(w, item.Job, item.State)
			}
		}
	}); err != nil {
		return err
	}
	if len(out.Items) == 0 {
		a.note("no open job has %s", strings.Join(labels, " and "))
	}
	var first *client.Problem
	refused := 0
	for _, item := range out.Items {
		if item.Problem == nil {
			continue
		}
		refused++
		a.note("%s: %s", item.Job, explain(item.Problem))
		if first == nil {
			first = item.Problem
		}
	}
	if first == nil {
		return nil
	}
	return &exitCode{codeOf(first), fmt.Errorf("%d of %d were not cancelled", refused, len(out.Items))}
}
