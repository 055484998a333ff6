package jobcmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func rerunCommand(a *cli.App) *cobra.Command {
	var q client.RerunQuery
	var failed, wait, quiet bool
	var cpu, gpu int64
	cmd := &cobra.Command{
		Use: "rerun ID[/TASKS]", Short: "Run failed tasks of a job again, as a new job", Args: cobra.ExactArgs(1),
		Long: `Submit a new job that runs tasks of an earlier one again, and print its id. It is
the same job, and its tasks have the indices (CLOUDSHARE_TASK) of those that are run
again: the ones that failed or were lost so far (--failed), those in a --state, or
those that are named, ID/3,17,40-60. --cpu, --memory, --gpu and --timeout say what
each has this time.`,
		Example: `  cloudshare rerun site-1.42 --failed
  cloudshare rerun site-1.42 --failed --memory 8Gi
  cloudshare rerun site-1.42/3,17 --wait
  cloudshare rerun site-1.42 --state cancelled`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, tasks := splitTasks(args[0])
			q.Tasks = tasks
			switch {
			case failed && len(q.States) > 0:
				return cli.Usage("--failed and --state: give one of them")
			case failed:
				q.States = []string{"failed", "lost"}
			case len(q.States) == 0 && tasks == "":
				return cli.Usage("which tasks? --failed, --state STATE, or name them: %s/3,17,40-60", id)
			}
			if err := checkKey(cmd.Flags(), q.Key); err != nil {
				return err
			}
			q.CPU, q.GPU = given(cmd.Flags(), "cpu", &cpu), given(cmd.Flags(), "gpu", &gpu)
			c, err := a.Client()
			if err != nil {
				return err
			}
			accepted, err := c.Rerun(cmd.Context(), id, q)
			if err != nil {
				return err
			}
			return reportSubmitted(cmd.Context(), a, c, accepted, submission{wait: wait, quiet: quiet})
		},
	}
	cli.Choices(cmd, &q.States, "state", taskStates, "the tasks in this `STATE` (may be repeated)")
	f := cmd.Flags()
	f.BoolVar(&failed, "failed", false, "the tasks that failed or were lost")
	f.StringVar(&q.Key, "key", "", "idempotency key: the same key and request again is one job")
	f.Int64Var(&cpu, "cpu", 0, "cores each task needs now, not what it needed")
	f.StringVar(&q.Memory, "memory", "", "memory each may use now, e.g. 8Gi; 0 = no limit")
	f.Int64Var(&gpu, "gpu", 0, "GPUs each needs now")
	f.StringVar(&q.Timeout, "timeout", "", "how long each may run now, e.g. 2h")
	f.BoolVar(&wait, "wait", false, "wait for the end; exit 10 if it failed, 11 cancelled, 12 lost")
	f.BoolVarP(&quiet, "quiet", "q", false, "print the id only, and no notes")
	return cmd
}

// given returns a flag's value if it was given, else nil.
func given(f *pflag.FlagSet, name string, value *int64) *int64 {
	if !f.Changed(name) {
		return nil
	}
	return value
}

// printID prints a job's id alone.
func printID(id string) func(io.Writer) {
	return func(w io.Writer) { fmt.Fprintln(w, id) }
}
