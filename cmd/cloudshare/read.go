package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

func (a *app) jobsCommand() *cobra.Command {
	var q client.JobQuery
	cmd := &cobra.Command{
		Use: "jobs", Short: "List jobs, newest first", Args: cobra.NoArgs,
		Example: `  cloudshare jobs --state running
  cloudshare jobs --name nightly
  cloudshare jobs --label team=render --limit 5 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(q.Limit); err != nil {
				return err
			}
			page, err := a.jobsPage(cmd.Context(), q)
			if err != nil {
				return err
			}
			if page.Next != "" && a.format == "table" {
				more := "more"
				if len(page.Items) < q.Limit {
					more = fmt.Sprintf("only a part of the jobs was looked at (%d pages or %s); go on with", mostPages, mostLooking)
				}
				defer a.note("%s: --cursor %s", more, page.Next)
			}
			return a.show(page, func(w io.Writer) {
				row(w, "ID", "NAME", "STATE", "TASKS", "SUBMITTED", "REASON")
				for _, j := range page.Items {
					row(w, j.ID, j.Name, j.State, tally(j.Counts), j.SubmittedAt, j.Reason)
				}
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.State, "state", "", "only jobs in this `STATE`")
	f.StringVar(&q.Site, "site", "", "only jobs of this owner")
	f.StringArrayVar(&q.Labels, "label", nil, "only jobs with this `KEY=VALUE` (may be repeated)")
	f.StringVar(&q.Name, "name", "", "only jobs whose name has this `PART`, whatever its case")
	f.IntVar(&q.Limit, "limit", 20, "how many at most, 1 to 1000")
	f.StringVar(&q.Cursor, "cursor", "", "go on where a page ended")
	return cmd
}

// checkLimit: the client leaves a limit of 0 away, and the API's default would
// come as a surprise.
func checkLimit(n int) error {
	if n < 1 || n > 1000 {
		return usage("--limit %d: must be 1 to 1000", n)
	}
	return nil
}

const (
	// mostPages and mostLooking bound how far a list goes for jobs that pass its
	// filter: a broker passes over some ten thousand others in one answer.
	mostPages   = 100
	mostLooking = 5 * time.Second
)

// jobsPage goes on where the broker's answer ends until there are as many jobs
// as asked for, there are no more, or a bound is met.
func (a *app) jobsPage(ctx context.Context, q client.JobQuery) (wire.List[wire.Job], error) {
	c, err := a.client()
	if err != nil {
		return wire.List[wire.Job]{}, err
	}
	begin, limit := time.Now(), q.Limit
	page, err := c.Jobs(ctx, q)
	if err != nil || page.Next == "" || len(page.Items) >= limit {
		return page, err
	}
	if c, err = client.New(a.addr); err != nil { // one that watches would wait for a change
		return page, err
	}
	if c, err = a.fresh.ask(c); err != nil {
		return page, err
	}
	defer c.Close()
	for pages := 1; page.Next != "" && len(page.Items) < limit && pages < mostPages && time.Since(begin) < mostLooking; pages++ {
		q.Cursor, q.Limit = page.Next, limit-len(page.Items)
		more, err := c.Jobs(ctx, q)
		if err != nil {
			return page, err
		}
		page.Items, page.Next = append(page.Items, more.Items...), more.Next
	}
	return page, nil
}

// tally words the counts that are not zero, the most advanced states last.
func tally(counts map[string]uint32) string {
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	return strings.Join(parts, ", ")
}

func (a *app) jobCommand() *cobra.Command {
	return &cobra.Command{
		Use: "job ID", Short: "Show one job", Args: cobra.ExactArgs(1),
		Example: "  cloudshare job site-1.42 -o yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			job, err := c.Job(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.showJob(job)
		},
	}
}

func (a *app) showJob(j wire.Job) error {
	_, a.over = ends[j.State]
	return a.show(j, func(w io.Writer) {
		row(w, "id", j.ID)
		row(w, "name", j.Name)
		row(w, "owner", j.Site)
		row(w, "state", j.State)
		row(w, "reason", j.Reason)
		row(w, "durability", j.Durability)
		row(w, "tasks", tally(j.Counts))
		row(w, "submitted", j.SubmittedAt)
		row(w, "started", j.StartedAt)
		row(w, "ended", j.EndedAt)
		row(w, "command", strings.Join(j.Spec.Command, " "))
		row(w, "each task", fmt.Sprintf("%s, memory %s, %s", plural(j.Spec.Resources.CPU, "core"), j.Spec.Resources.Memory, plural(j.Spec.Resources.GPU, "gpu")))
		if len(j.Spec.Selectors) > 0 {
			row(w, "machines with", strings.Join(j.Spec.Selectors, ", "))
		}
	})
}

func (a *app) tasksCommand() *cobra.Command {
	var limit int
	var cursor string
	cmd := &cobra.Command{
		Use: "tasks ID", Short: "List the tasks of a job", Args: cobra.ExactArgs(1),
		Example: "  cloudshare tasks site-1.42",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLimit(limit); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			page, err := c.Tasks(cmd.Context(), args[0], limit, cursor)
			if err != nil {
				return err
			}
			if page.Next != "" && a.format == "table" {
				defer a.note("more: --cursor %s", page.Next)
			}
			return a.show(page, func(w io.Writer) {
				row(w, "TASK", "STATE", "SITE", "ATTEMPT", "EXIT", "SIGNAL", "STARTED", "ENDED", "REASON")
				for _, t := range page.Items {
					row(w, t.Index, t.State, t.Site, t.Attempt, t.ExitCode, t.Signal, t.StartedAt, t.EndedAt, t.Reason)
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "how many at most, 1 to 1000")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on where a page ended")
	return cmd
}

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Short: "Cancel a job", Args: cobra.ExactArgs(1),
		Example: "  cloudshare cancel site-1.42",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			job, err := c.Cancel(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.show(job, func(w io.Writer) { row(w, job.ID, job.State) })
		},
	}
}

func (a *app) logsCommand() *cobra.Command {
	var q client.LogQuery
	cmd := &cobra.Command{
		Use: "logs ID", Short: "Print a task's output", Args: cobra.ExactArgs(1),
		Example: `  cloudshare logs site-1.42 --follow
  cloudshare logs site-1.42 --task 7 --stream stderr`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.Stream != "stdout" && q.Stream != "stderr" {
				return usage("--stream %q: must be stdout or stderr", q.Stream)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			return copyLogs(cmd.Context(), c, args[0], q, a.out)
		},
	}
	f := cmd.Flags()
	f.Uint32Var(&q.Task, "task", 0, "the task's index")
	f.Uint32Var(&q.Attempt, "attempt", 0, "the attempt, from 1 (default the latest)")
	f.StringVar(&q.Stream, "stream", "stdout", "stdout or stderr")
	f.BoolVarP(&q.Follow, "follow", "F", false, "go on until the attempt ends")
	return cmd
}

// plural counts things in words.
func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
