package sitecmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func exportCommand(a *cli.App) *cobra.Command {
	var q client.ArchiveQuery
	format := "json"
	cmd := &cobra.Command{
		Use: "export", Short: "Write a broker's archive of attempts",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q: the archive goes to stdout; the federation's state is written by cloudshare state export FILE", args[0])
			}
			return nil
		},
		Long: `Write a broker's archive of attempts to stdout: json is one object a line (a
line {"gap": …} says what is missing), csv has a heading, swf is the Standard
Workload Format, one task a line, to be simulated. Names of users are left out of
what is to be handed on, unless --users asks for them. The federation's state
itself, to move it to another backend, is written by cloudshare state export.`,
		Example: `  cloudshare export --since 7d > attempts.ndjson
  cloudshare export --format csv --label team=render > render.csv
  cloudshare export --format swf > site-1.swf && cloudshare sim run --help`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			if format == "json" {
				format = "ndjson"
			}
			if err := c.Export(cmd.Context(), q, format, a.Out); err != nil {
				return fmt.Errorf("export: %w", err)
			}
			return nil
		},
	}
	cli.Choice(cmd, &format, "format", []string{"json", "csv", "swf"}, "json, csv or swf")
	cmd.Flags().BoolVar(&q.Users, "users", false, "say in json and csv whose this site's jobs are")
	archiveFlags(cmd.Flags(), &q)
	return cmd
}
