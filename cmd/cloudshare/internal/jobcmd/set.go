package jobcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// setCommand changes jobs that were submitted. It is one command with a flag for each thing that can change, named as
// submit names it, like scontrol update and bmod; a number as an argument, as condor_prio and renice have it, could not
// be below zero among the flags.
func setCommand(a *cli.App) *cobra.Command {
	var which selection
	var priority int32
	cmd := &cobra.Command{
		Use: "set (ID… | --label KEY=VALUE | --mine | --user USER) --priority N", Short: "Change the priority of jobs",
		Long: `Change the priority of jobs that have not ended. What of them waits takes its place
among your own jobs that wait, the higher priority first and then by arrival,
wherever it waits: in the federation's queue, at home, for other jobs, or for your
turn. What runs goes on. It changes nothing for other users and other sites.
With --label, --mine and --user jobs are selected as by cloudshare cancel.`,
		Example: `  cloudshare set site-1.42 --priority 10
  cloudshare set site-1.42 site-1.43 --priority -5
  cloudshare set --label sweep=17 --priority 10`,
		Args: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("priority") {
				return fmt.Errorf("say what to change: --priority N")
			}
			return which.check(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return setPriority(cmd.Context(), a, args[0], priority)
			}
			return setPriorities(cmd.Context(), a, args, which, priority)
		},
	}
	cmd.Flags().Int32Var(&priority, "priority", 0, "higher first, among your own jobs")
	which.addFlags(cmd, "change")
	return cmd
}

func setPriority(ctx context.Context, a *cli.App, id string, priority int32) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	job, err := c.SetPriority(ctx, id, priority)
	if err != nil {
		return err
	}
	return a.Show(job, func(w io.Writer) { cli.Row(w, job.ID, job.State, job.Spec.Priority) })
}

// setPriorities changes jobs, mostTargets at a time, and shows what became of each.
func setPriorities(ctx context.Context, a *cli.App, jobs []string, which selection, priority int32) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	out := wire.Prioritized{Items: []wire.PrioritizedJob{}}
	if which.given() {
		err = which.prioritize(ctx, c, priority, &out)
	}
	if err == nil {
		err = inParts(jobs, func(some []string) error {
			part, failed := c.SetPriorities(ctx, some, priority)
			out.Items = append(out.Items, part.Items...)
			return failed
		})
	}
	if err != nil && len(out.Items) == 0 {
		return err
	}
	return cmp.Or(err, showPrioritized(a, out)) // what was changed before is shown all the same
}

// prioritize changes the jobs of the selection until there are no others.
func (s *selection) prioritize(ctx context.Context, c *client.Client, priority int32, out *wire.Prioritized) error {
	if err := s.findUser(ctx, c); err != nil {
		return err
	}
	told := map[string]bool{}
	return s.repeat(ctx, func() (news, more bool, err error) {
		part, err := c.PrioritizeSelected(ctx, s.user, s.labels, priority)
		for _, item := range part.Items {
			if !told[item.Job] {
				news, told[item.Job] = true, true
				out.Items = append(out.Items, item)
			}
		}
		return news, part.More, err
	})
}

// showPrioritized shows what became of each job; the error is the first one's that was not changed.
func showPrioritized(a *cli.App, out wire.Prioritized) error {
	if err := a.Show(out, func(w io.Writer) {
		for _, item := range out.Items {
			if item.Problem == nil {
				cli.Row(w, item.Job, item.State, item.Priority)
			}
		}
	}); err != nil {
		return err
	}
	no := refusals{app: a}
	for _, item := range out.Items {
		no.add(item.Job, item.Problem)
	}
	return no.err(len(out.Items), "changed")
}
