package jobcmd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/fetch"
)

func fetchCommand(a *cli.App) *cobra.Command {
	var dir string
	var task uint32
	cmd := &cobra.Command{
		Use: "fetch JOB", Short: "Bring home the files that a job's tasks have left", Args: oneJob,
		Long: `Bring the files that a job's tasks have left, as its --output named them, into this directory or another one. Those of
a job of several tasks go into a folder for each task, named by its index; those of one --task, and of a job of one task,
go there directly.

What is there stays: a file with the same bytes is passed over, so that what was interrupted is gone on with; one with
others is told, and the exit code is then not 0. Each file's SHA-256 is checked. Nothing is written outside the
directory, and of a file's mode only whether it can be executed is kept.

What tasks left that failed, or were cancelled, at other sites is on its way here for some seconds after their end, and
need not come: it is waited for up to ten seconds, and what is not here then is told; the exit code stays 0.`,
		Example: `  cloudshare fetch site-1.42 -o results
  cloudshare fetch site-1.42 --task 7`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p := fetch.Plan{Job: args[0], Dir: dir}
			if slices.Contains(forms, dir) {
				return cli.Usage("-o %s: -o is the directory here; the form of the answer is --output %s, a directory ./%s",
					dir, dir, dir)
			}
			var of *uint32
			if cmd.Flags().Changed("task") {
				of = &task
			}
			return fetchFiles(cmd.Context(), a, p, of)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&dir, "dir", "o", ".", "the `DIRECTORY` that gets the files; it is made if it is not there")
	f.Uint32Var(&task, "task", 0, "only of the task of this index")
	f.StringVar(&a.Format, "output", forms[0], "table, json or yaml")
	_ = cmd.MarkFlagDirname("dir") // it is there
	return cmd
}

// fetchFiles fetches the files of a job, or of one of its tasks, and says what came.
func fetchFiles(ctx context.Context, a *cli.App, p fetch.Plan, task *uint32) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	job, unknown := c.Job(ctx, p.Job)
	if unknown != nil && !isNotFound(unknown) {
		return unknown
	}
	var away []wire.Task
	if unknown == nil {
		away = awaitFailed(ctx, c, &job, task)
	}
	f := fetch.New(c, newTransferBar(a))
	list, err := f.List(ctx, p.Job, task)
	switch {
	case err != nil:
		return err
	case len(list) == 0 && unknown != nil:
		return unknown
	case len(list) == 0:
		tellAway(a, job.ID, away)
		tellBehind(ctx, a, c, job.ID, task)
		return cli.WithExit(cli.ExitNotFound, noFiles(job))
	}
	tasks := job.Spec.Count
	for i := range list { // files outlive what else is known of their job
		tasks = max(tasks, list[i].Task+1)
	}
	p.ByTask = task == nil && tasks > 1
	outcome, err := f.Save(ctx, list, p)
	if err != nil {
		return err
	}
	a.Note("%s", fetched(outcome))
	tellAway(a, p.Job, away)
	tellBehind(ctx, a, c, p.Job, task)
	return a.Show(wire.List[fetch.File]{Items: list}, func(io.Writer) {})
}

func isNotFound(err error) bool {
	var problem *client.Problem
	return errors.As(err, &problem) && problem.Status == http.StatusNotFound
}

// fetchTo lists a job's files and fetches them.
func fetchTo(ctx context.Context, a *cli.App, c *client.Client, p fetch.Plan, task *uint32,
) ([]fetch.File, fetch.Outcome, error) {
	f := fetch.New(c, newTransferBar(a))
	list, err := f.List(ctx, p.Job, task)
	if err != nil || len(list) == 0 {
		return nil, fetch.Outcome{}, err
	}
	outcome, err := f.Save(ctx, list, p)
	return list, outcome, err
}
