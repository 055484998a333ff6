package jobcmd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// logsAsked is what `logs` was asked for.
type logsAsked struct {
	client.LogQuery
	all    bool
	states []string
	prefix bool
}

func logsCommand(a *cli.App) *cobra.Command {
	q := logsAsked{LogQuery: client.LogQuery{Stream: "stdout"}}
	cmd := &cobra.Command{
		Use: "logs ID[/TASKS]", Short: "Print the output of tasks", Args: cobra.ExactArgs(1),
		Long: `Print the output of a task: task 0, or the one that is named, ID/17; what it wrote to
stderr with --stream stderr. Several, as ID/3,17,40-60, or --all of those that have
begun, or those in a --state are printed one after the other. With --follow they are
printed as they come, 64 tasks at a time, whole lines with ID/TASK before each, until
all have ended.

What could not be had is said at the end, and the exit code is then not 0.`,
		Example: `  cloudshare logs site-1.42 --follow
  cloudshare logs site-1.42/7 --stream stderr --tail 20
  cloudshare logs site-1.42/3,17,40-60 --prefix
  cloudshare logs site-1.42 --state failed --stream stderr --tail 5 --prefix
  cloudshare logs site-1.42 --all --follow`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return printLogs(a, cmd, args[0], q)
		},
	}
	cli.Choice(cmd, &q.Stream, "stream", []string{"stdout", "stderr"}, "stdout or stderr")
	cli.Choices(cmd, &q.states, "state", taskStates, "of the tasks in this `STATE` (may be repeated)")
	f := cmd.Flags()
	f.Uint32Var(&q.Task, "task", 0, "the task's index")
	f.Uint32Var(&q.Attempt, "attempt", 0, "the attempt, from 1 (default the latest)")
	f.BoolVarP(&q.Follow, "follow", "F", false, "go on until the attempt ends; of several tasks, until all have ended")
	f.IntVar(&q.Tail, "tail", 0, "only the last `N` lines of each task, and at most 256 KiB (default all)")
	f.BoolVar(&q.all, "all", false, "of all tasks that have begun")
	f.BoolVar(&q.prefix, "prefix", false, "put ID/TASK before each line (default of several tasks with --follow)")
	return cmd
}

// printLogs prints the output of one task, or of several.
func printLogs(a *cli.App, cmd *cobra.Command, arg string, q logsAsked) error {
	id, tasks := splitTasks(arg)
	given := cmd.Flags().Changed
	switch {
	case given("tail") && (q.Tail < 1 || q.Tail > 10_000):
		return cli.Usage("--tail %d: must be 1 to 10000", q.Tail)
	case given("task") && (tasks != "" || q.all || len(q.states) > 0):
		return cli.Usage("--task names one task: omit it, or %s, --all and --state", id+"/TASKS")
	case q.all && (tasks != "" || len(q.states) > 0):
		return cli.Usage("--all and a choice of tasks: give one of them")
	}
	several := q.all || len(q.states) > 0
	if tasks != "" {
		x, err := jobspec.ParseIndices(tasks)
		if err != nil {
			return cli.Usage("%s: what follows the job's id %w", arg, err)
		}
		if several = several || x.Len() > 1; !several {
			q.Task = x.At(0)
		}
	}
	if several && q.Attempt > 0 {
		return cli.Usage("--attempt is for one task: name it, %s/17", id)
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	if !several {
		return copyTask(cmd.Context(), a, c, id, q, given("stream"))
	}
	return copyOutput(cmd.Context(), a, c, id, client.OutputQuery{
		Tasks: tasks, States: q.states, Stream: q.Stream,
		Tail: q.Tail, Follow: q.Follow,
	}, q.prefix || q.Follow && !given("prefix"))
}

// copyTask prints one stream of one task. Who named no stream and gets nothing hears of
// the other one.
func copyTask(ctx context.Context, a *cli.App, c *client.Client, id string, q logsAsked, named bool) error {
	to := &linePrefixer{to: a.Out}
	if q.prefix {
		to.prefix = fmt.Sprintf("%s/%d: ", id, q.Task)
	}
	n, err := copyLogs(ctx, c, id, q.LogQuery, to)
	if q.prefix {
		err = cmp.Or(to.endLine(), err)
	}
	if err == nil && n == 0 && !named {
		a.Note("%s/%d wrote nothing to stdout; see cloudshare logs %s/%d --stream stderr", id, q.Task, id, q.Task)
	}
	return err
}
