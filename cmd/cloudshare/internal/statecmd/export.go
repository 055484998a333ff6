package statecmd

import (
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/coord/statefile"
)

func stateExportCommand(a *cli.App) *cobra.Command {
	var path, dir string
	cmd := &cobra.Command{
		Use: "export FILE", Short: "Write a stopped federation's state into a file, and seal what it was read from", Args: cobra.ExactArgs(1),
		Long: `Write the replicated state of a stopped federation into a file that is not there
yet, and seal what it was read from: brokers do not start on it any more. Seals
are taken away with cloudshare state reopen.

On Raft every broker has a copy of its own: export at a majority of the voters,
which the command names. Which file is the newest the import sees by itself. On
ZooKeeper there is one copy: export once, with a broker's configuration.

Refused while a broker runs.`,
		Example: `  cloudshare state export lab-a.state --data-dir /var/lib/cloudshare
  cloudshare state export fed.state --config /etc/cloudshare.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := backendFromFlags(a, path, dir, cmd)
			if err != nil {
				return err
			}
			if err = statefile.Absent(args[0]); err != nil {
				return moveRefusal(err)
			}
			h, err := from.export(cmd.Context(), args[0])
			if err != nil {
				return moveRefusal(err)
			}
			if err = a.Show(exportedIn(args[0], h), exportedIn(args[0], h).show); err != nil {
				return err
			}
			if n := len(h.Voters); n > 1 {
				a.Note("Sealed: %s. Export at %d of the %d voters, then import all files at one site: cloudshare state import FILE… --config FILE", from, n/2+1, n)
			} else {
				a.Note("Sealed: %s. Then: cloudshare state import %s --config FILE", from, args[0])
			}
			return nil
		},
	}
	dataFlags(cmd, &path, &dir)
	return cmd
}

func stateReopenCommand(a *cli.App) *cobra.Command {
	var path, dir string
	cmd := &cobra.Command{
		Use: "reopen", Short: "Take the seal of an export away: the federation goes on where it was", Args: cobra.NoArgs,
		Long: `Take the seal of an export away, so that the federation goes on where it was.
Only do this if the file was imported nowhere: otherwise there are two of it, and
tasks can run in both.`,
		Example: "  cloudshare state reopen --data-dir /var/lib/cloudshare",
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := backendFromFlags(a, path, dir, cmd)
			if err != nil {
				return err
			}
			if err = from.reopen(cmd.Context()); err != nil {
				return moveRefusal(err)
			}
			a.Note("Open: %s. Start the brokers; throw the exported file away", from)
			return nil
		},
	}
	dataFlags(cmd, &path, &dir)
	return cmd
}

// dataFlags name a stopped broker's data, as recoverDir reads them.
func dataFlags(cmd *cobra.Command, path, dir *string) {
	cmd.Flags().StringVar(path, "config", "", "take everything from a broker's YAML `FILE`")
	cmd.Flags().StringVar(dir, "data-dir", "", "the stopped broker's data directory, on Raft")
}
