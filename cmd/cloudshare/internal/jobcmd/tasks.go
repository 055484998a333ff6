package jobcmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/fsm"
)

// taskStates are those of a task.
var taskStates = strings.Split(fsm.TaskStateNames(), ", ")

func tasksCommand(a *cli.App) *cobra.Command {
	var q client.TaskQuery
	var quiet bool
	cmd := &cobra.Command{
		Use: "tasks ID[/TASKS]", Short: "List the tasks of a job", Args: cobra.ExactArgs(1),
		Long: `List the tasks of a job, or those of them that are named: ID/17, ID/3,17,40-60.`,
		Example: `  cloudshare tasks site-1.42
  cloudshare tasks site-1.42 --state failed --state lost
  cloudshare tasks site-1.42/3,17,40-60 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLimit(q.Limit); err != nil {
				return err
			}
			id, tasks := splitTasks(args[0])
			q.Tasks = tasks
			page, err := listTasks(cmd.Context(), a, id, q)
			if err != nil {
				return err
			}
			switch {
			case page.Next != "" && a.Format == "table":
				defer a.Note("more: --cursor %s", page.Next)
			case len(page.Items) == 0:
				defer a.Note("no task of %s is like that", id)
			}
			return a.Show(page, func(w io.Writer) { showTasks(w, id, page.Items, quiet) })
		},
	}
	cli.Choices(cmd, &q.States, "state", taskStates, "only tasks in this `STATE` (may be repeated)")
	f := cmd.Flags()
	f.IntVar(&q.Limit, "limit", 100, "how many at most, 1 to 1000")
	f.StringVar(&q.Cursor, "cursor", "", "go on where a page ended")
	f.BoolVarP(&quiet, "quiet", "q", false, "print ID/TASK only")
	return cmd
}

func showTasks(w io.Writer, id string, tasks []wire.Task, quiet bool) {
	if quiet {
		for _, t := range tasks {
			fmt.Fprintf(w, "%s/%d\n", id, t.Index)
		}
		return
	}
	cli.Row(w, "TASK", "STATE", "SITE", "ATTEMPT", "EXIT", "SIGNAL", "STARTED", "ENDED", "REASON")
	for _, t := range tasks {
		cli.Row(w, t.Index, t.State, t.Site, t.Attempt, t.ExitCode, t.Signal, t.StartedAt, t.EndedAt, t.Reason)
	}
}

// splitTasks takes apart what names a job, or some of its tasks: ID, ID/17 or
// ID/3,17,40-60.
func splitTasks(arg string) (job, tasks string) {
	job, tasks, _ = strings.Cut(arg, "/")
	return job, tasks
}

// listTasks goes on where the broker's answer ends until there are as many tasks
// as asked for, there are no more, or a bound is met.
func listTasks(ctx context.Context, a *cli.App, id string, q client.TaskQuery) (wire.List[wire.Task], error) {
	c, err := a.Client()
	if err != nil {
		return wire.List[wire.Task]{}, err
	}
	begin, limit := time.Now(), q.Limit
	page, err := c.FindTasks(ctx, id, q)
	if err != nil || page.Next == "" || len(page.Items) >= limit {
		return page, err
	}
	if c, err = a.PlainClient(); err != nil {
		return page, err
	}
	defer c.Close()
	for pages := 1; page.Next != "" && len(page.Items) < limit && pages < mostPages &&
		time.Since(begin) < mostLooking; pages++ {
		q.Cursor, q.Limit = page.Next, limit-len(page.Items)
		more, err := c.FindTasks(ctx, id, q)
		if err != nil {
			return page, err
		}
		page.Items, page.Next = append(page.Items, more.Items...), more.Next
	}
	return page, nil
}
