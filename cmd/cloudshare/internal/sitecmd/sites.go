package sitecmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func sitesCommand(a *cli.App) *cobra.Command {
	var machines bool
	cmd := cli.ShowCommand(a, "sites", "List the sites of the federation", "  cloudshare sites\n  cloudshare sites --machines",
		func(cmd *cobra.Command, c *client.Client) (wire.List[wire.Site], error) {
			return c.Sites(cmd.Context())
		},
		func(w io.Writer, l wire.List[wire.Site]) {
			if machines {
				showMachines(w, l)
				return
			}
			cli.Row(w, "SITE", "STATE", "VOTER", "CORES", "LENT", "ASSIGNED", "HOME", "HTTP")
			for _, s := range l.Items {
				cli.Row(w, s.ID, siteText(s), cli.YesNo(s.Voter), s.Capacity.CPU, s.Exposed.CPU, s.Assigned.CPU,
					s.Home.CPU, s.Addresses.HTTP)
			}
			for _, s := range l.Items {
				if s.Contact != nil && !s.Contact.Reached {
					fmt.Fprintf(w, "\n%s is not reached at http %s: %s\n", s.ID, s.Contact.Address, s.Contact.Why)
				}
			}
		})
	cmd.AddCommand(a.Readable(plausibilityCommand(a)))
	cmd.Flags().BoolVar(&machines, "machines", false, "the machines that they lend, with the labels that jobs may select by")
	return cmd
}

// showMachines lists what is lent now.
func showMachines(w io.Writer, l wire.List[wire.Site]) {
	cli.Row(w, "SITE", "MACHINE", "LENT", "FREE", "RUNS", "LABELS")
	for _, s := range l.Items {
		for _, m := range s.Machines {
			var labels []string
			for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
				labels = append(labels, key+"="+m.Labels[key])
			}
			cli.Row(w, s.ID, m.Name, m.Exposed.CPU, m.Free.CPU, strings.Join(m.Runs, ","), strings.Join(labels, ","))
		}
	}
}

// siteText returns a site's state and, if it lends nothing, why.
func siteText(s wire.Site) string {
	if s.Closed == "" {
		return s.State
	}
	return s.State + ", " + s.Closed
}
