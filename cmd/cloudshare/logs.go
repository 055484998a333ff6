package main

import (
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
)

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
