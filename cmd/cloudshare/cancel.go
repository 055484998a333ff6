package main

import (
	"io"

	"github.com/spf13/cobra"
)

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
