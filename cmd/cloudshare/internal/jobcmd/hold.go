package jobcmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func holdCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "hold ID", Short: "Begin no more tasks of a job", Args: cobra.ExactArgs(1),
		Long: `Begin no more tasks of a job until cloudshare release. What runs goes on, but
for attempts of tasks that wait again because their site is suspected: these are
stopped. It works for every job that has not ended, wherever it waits: in the
federation's queue, at home, for other jobs, or for your turn. What fails meanwhile
is not tried again before release. Then it has its place of before among your jobs.`,
		Example: `  cloudshare hold site-1.42`,
		RunE:    func(cmd *cobra.Command, args []string) error { return setHold(cmd.Context(), a, args[0], true) },
	}
}

func releaseCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "release ID", Short: "Let tasks of a job that is held begin again", Args: cobra.ExactArgs(1),
		Long:    `Let tasks of a job begin again that cloudshare hold holds, as the job's rules say.`,
		Example: `  cloudshare release site-1.42`,
		RunE:    func(cmd *cobra.Command, args []string) error { return setHold(cmd.Context(), a, args[0], false) },
	}
}

func setHold(ctx context.Context, a *cli.App, id string, hold bool) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	job, err := c.SetHold(ctx, id, hold)
	if err != nil {
		return err
	}
	return a.Show(job, func(w io.Writer) { cli.Row(w, job.ID, job.State) })
}
