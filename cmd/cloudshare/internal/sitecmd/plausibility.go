package sitecmd

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func plausibilityCommand(a *cli.App) *cobra.Command {
	cmd := cli.ShowCommand(a, "plausibility", "Show what stands out of what sites report and nobody can prove",
		"  cloudshare sites plausibility\n  cloudshare sites plausibility -o json",
		func(cmd *cobra.Command, c *client.Client) (wire.Plausibility, error) {
			return c.Plausibility(cmd.Context())
		}, showPlausibility)
	cmd.Long = `Show what stands out of what sites report and nobody can prove: how long they
ran other sites' tasks, and what they lend. It proves nothing: slow machines and
stretched durations look the same, and tasks know where they run, so an owner
can make a site look slow. The broker that is asked has seen it itself, since its
start; older counts fade. Nothing is decided by it.

RUNS      of other sites' tasks, that the ledger has charged
BEYOND    of these, those that do not fit in the log's time
SLOWER    how many times as long tasks took there as tasks of the same jobs
          elsewhere, of other owners; "-": too few to say
RETURNED  other sites' tasks that it handed back or never began
LENT      core-hours that it has offered
RAN       core-hours that it was credited for, of other sites' tasks
IDLE      core-hours lent while nothing ran there and another site's task waited
          that would have fitted`
	return cmd
}

func showPlausibility(w io.Writer, p wire.Plausibility) {
	if p.Since == nil {
		fmt.Fprintln(w, "This broker has not begun to look; ask again in a few seconds.")
		return
	}
	cli.Row(w, "SITE", "RUNS", "BEYOND", "SLOWER", "RETURNED", "LENT", "RAN", "IDLE")
	for i := range p.Sites {
		s := &p.Sites[i]
		cli.Row(w, s.Site, math.Round(s.Runs), math.Round(s.Beyond), slowerText(s.Slowness),
			math.Round(s.Declined+s.Unstarted), hoursText(s.Lent), hoursText(s.Ran), hoursText(s.Idle))
	}
	fmt.Fprintf(w, "\nseen by this broker since %s\n", p.Since.Format(time.RFC3339))
	said := false
	for i := range p.Sites {
		for _, note := range p.Sites[i].Notes {
			fmt.Fprintf(w, "\n%s: %s\n", p.Sites[i].Site, note)
			said = true
		}
	}
	if !said {
		fmt.Fprintln(w, "nothing stands out")
	}
}

func slowerText(s *wire.Slowness) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", s.Factor)
}

func hoursText(hours float64) string { return fmt.Sprintf("%.1f", hours) }
