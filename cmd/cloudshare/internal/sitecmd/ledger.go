package sitecmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func queueCommand(a *cli.App) *cobra.Command {
	var in cli.Amounts
	return cli.ShowCommand(a, "queue", "Show what waits, per owner", "  cloudshare queue",
		func(cmd *cobra.Command, c *client.Client) (list wire.List[wire.Queue], err error) {
			if list, err = c.Queue(cmd.Context()); err == nil {
				in, err = cli.LoadAmounts(cmd.Context(), a, c)
			}
			return list, err
		},
		func(w io.Writer, l wire.List[wire.Queue]) {
			cli.Row(w, "OWNER", "WAITING", "CORES", "PRIORITY")
			for _, q := range l.Items {
				cli.Row(w, q.Site, q.Waiting, q.CPU, in.Standing(q.Priority))
			}
		})
}

func ledgerCommand(a *cli.App) *cobra.Command {
	var in cli.Amounts
	cmd := cli.ShowCommand(a, "ledger", "Show who used how much of whose machines", "  cloudshare ledger\n  cloudshare ledger -o json",
		func(cmd *cobra.Command, c *client.Client) (ledger wire.Ledger, err error) {
			if ledger, err = c.Ledger(cmd.Context()); err == nil {
				in, err = cli.LoadAmounts(cmd.Context(), a, c)
			}
			return ledger, err
		},
		func(w io.Writer, l wire.Ledger) { showLedger(w, l, in) })
	cmd.Long = `Show who used how much of whose machines.

The table is in core-hours where the policy counts time on cores; ORIG_DIRECT
and REL_DIRECT also count how long ago it was. -o json has the exact sums, in
the unit that it names.`
	return cmd
}

func showLedger(w io.Writer, l wire.Ledger, in cli.Amounts) {
	cli.Row(w, "SITE", "CONTRIBUTION", "UTILITY", "PRIORITY")
	for _, s := range l.Sites {
		cli.Row(w, s.Site, in.Standing(s.Contribution), in.Standing(s.Utility), in.Standing(s.Priority))
	}
	fmt.Fprintf(w, "\nunit %s, entry %d\n\n", in.Unit(l.Unit), l.Index)
	cli.Row(w, "OWNER", "RAN ON", "TASKS", "USED")
	for _, c := range l.Matrix {
		cli.Row(w, c.Owner, c.Executor, c.Tasks, in.Used(c.A))
	}
}
