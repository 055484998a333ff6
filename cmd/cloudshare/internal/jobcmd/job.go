package jobcmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

func jobCommand(a *cli.App) *cobra.Command {
	var graph string
	cmd := &cobra.Command{
		Use: "job ID", Short: "Show one job", Args: oneJob,
		Long: `Show one job: how far it is, which of its tasks failed first, and all that it was
submitted with, quoted as a shell takes it (what would not show, such as a line's
end, as $'…' for bash, ksh and zsh).

With --graph the jobs around it are shown instead: those that it waits for or has
named, those that wait for it, and theirs in turn, with how each is to end (ok
unless said); =dot writes them for Graphviz. Jobs of other users are counted.

With --watch it is shown again whenever it changes; the exit code is then the
job's: 0 succeeded, 10 failed, 11 cancelled, 12 lost.`,
		Example: `  cloudshare job site-1.42 -o yaml
  cloudshare job site-1.42 --watch && cloudshare logs site-1.42
  cloudshare job site-1.42 --graph
  cloudshare job site-1.42 --graph=dot | dot -Tsvg > workflow.svg`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			if graph != "" {
				return showGraphOf(a, cmd, c, args[0], graph)
			}
			job, err := c.Job(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showJob(a, job)
		},
	}
	cli.Choice(cmd, &graph, "graph", []string{graphTable, graphDOT}, "show the jobs around it instead: as a table, or in the language of Graphviz (dot)")
	cmd.Flags().Lookup("graph").NoOptDefVal = graphTable
	return cmd
}

// oneJob takes the id of one job as the only argument.
func oneJob(cmd *cobra.Command, args []string) error {
	if err := cobra.ExactArgs(1)(cmd, args); err != nil {
		return err
	}
	return wholeJob(args[0])
}

// wholeJob refuses the name of a task where a job's is wanted.
func wholeJob(arg string) error {
	if job, tasks := splitTasks(arg); tasks != "" {
		return fmt.Errorf("%s names a task; name the job, %s, or see cloudshare tasks %s", arg, job, arg)
	}
	return nil
}

// showJob shows a job. One that is watched ends the command when it has ended.
func showJob(a *cli.App, j wire.Job) error {
	if code, ended := cli.EndCodes[j.State]; ended {
		a.Over = true
		if code != cli.ExitOK {
			a.Outcome = cli.WithExit(code, nil) // it is shown
		}
	}
	return a.Show(j, func(w io.Writer) {
		cli.Row(w, "id", j.ID)
		cli.Row(w, "name", j.Name)
		cli.Row(w, "owner", j.Site)
		if j.User != "" {
			cli.Row(w, "user", j.User)
		}
		cli.Row(w, "state", stateText(j))
		cli.Row(w, "reason", j.Reason)
		if j.CancelledBy != "" {
			cli.Row(w, "cancelled by", j.CancelledBy)
		}
		cli.Row(w, "durability", j.Durability)
		cli.Row(w, "tasks", tally(j.Counts))
		showAwaited(w, j.AwaitedBy)
		for i, t := range j.Failed {
			name := ""
			if i == 0 {
				name = "failed first"
			}
			fmt.Fprintf(w, "%s\t%s\n", name, cli.Cell(fmt.Sprintf("%s/%d %s", j.ID, t.Index, taskEnd(t))))
		}
		if len(j.Failed) > 0 {
			cli.Row(w, "its stderr", fmt.Sprintf("cloudshare logs %s/%d --stream stderr", j.ID, j.Failed[0].Index))
		}
		cli.Row(w, "submitted", j.SubmittedAt)
		cli.Row(w, "started", j.StartedAt)
		cli.Row(w, "ended", j.EndedAt)
		if j.Sealed {
			cli.Row(w, "sealed", "name, command and environment are shown by the broker of "+j.Site+" alone")
		}
		showSpec(w, j.Spec)
		for i := range j.Notices {
			cli.Row(w, "told of its end", noticeWords(&j.Notices[i]))
		}
	})
}

// taskEnd words how a task ended: its exit code or signal, where, and why.
func taskEnd(t wire.Task) string {
	text, code := t.State, ""
	switch {
	case t.Signal != nil:
		code = fmt.Sprintf("signal %d", *t.Signal)
	case t.ExitCode != nil:
		code = fmt.Sprintf("code %d", *t.ExitCode)
	}
	if code != "" && !strings.Contains(t.Reason, code) {
		text += " (" + code + ")"
	}
	if t.Site != "" {
		text += " at " + t.Site
	}
	if t.Reason != "" {
		text += ": " + t.Reason
	}
	return text
}

// showSpec shows what a job was submitted with; of what is mostly not said, what was.
func showSpec(w io.Writer, s wire.Spec) {
	said := func(name, text string) {
		if text != "" {
			cli.Row(w, name, text)
		}
	}
	cli.Row(w, "command", jobspec.ShellWords(s.Command))
	said("image", orNone(s.Image, ""))
	said("environment", jobspec.ShellWords(assignments(s.Env)))
	cli.Row(w, "each task", fmt.Sprintf("%s, memory %s, %s", cli.Plural(s.Resources.CPU, "core"), s.Resources.Memory, cli.Plural(s.Resources.GPU, "gpu")))
	said("indices", s.Indices)
	cli.Row(w, "timeout", orNone(s.Timeout, "none"))
	cli.Row(w, "retries", fmt.Sprintf("%s%s; when its site is lost: %s",
		cli.Plural(int64(s.Retry.MaxAttempts), "attempt"), retryWords(&s.Retry), s.Retry.OnLoss))
	if s.Parallel > 0 {
		cli.Row(w, "at a time", cli.Plural(int64(s.Parallel), "task"))
	}
	cli.Row(w, "priority", s.Priority)
	said("labels", jobspec.ShellWords(assignments(s.Labels)))
	said("only at", strings.Join(s.Sites.Only, ", "))
	said("not at", strings.Join(s.Sites.Not, ", "))
	said("machines with", strings.Join(s.Selectors, ", "))
	if s.Network {
		cli.Row(w, "network", "needed")
	}
	said("after", afterWords(s.After))
	said("inputs", strings.Join(inputWords(s.Inputs), ", "))
	said("outputs", outputWords(s.Outputs))
}

// orNone returns a text, or what stands for none.
func orNone(text *string, none string) string {
	if text == nil {
		return none
	}
	return *text
}

// assignments writes a map as NAME=VALUE, sorted.
func assignments(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return out
}
