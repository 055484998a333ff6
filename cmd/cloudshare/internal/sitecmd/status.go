package sitecmd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func statusCommand(a *cli.App) *cobra.Command {
	var hash bool
	cmd := cli.ShowCommand(a, "status", "Show what a broker knows of itself and the federation", "  cloudshare status",
		func(cmd *cobra.Command, c *client.Client) (wire.Status, error) { return c.Status(cmd.Context(), hash) },
		func(w io.Writer, s wire.Status) {
			cli.Row(w, "site", s.Site)
			if s.ShutOut != "" {
				cli.Row(w, "SHUT OUT", s.ShutOut)
			}
			cli.Row(w, "leader", leaderText(s))
			cli.Row(w, "term", s.Term)
			cli.Row(w, "entry", s.Index)
			if s.StateHash != nil {
				cli.Row(w, "state hash", fmt.Sprintf("%s at entry %d", s.StateHash.Hash, s.StateHash.Index))
			}
			cli.Row(w, "compared", comparedText(s.Compared))
			if s.Compared.Unsure != "" {
				cli.Row(w, "  lends nothing", s.Compared.Unsure)
			}
			for _, u := range s.Unreached {
				cli.Row(w, "not reached", fmt.Sprintf("by %s, at %s: %s", u.By, u.Address, u.Why))
			}
			cli.Row(w, "federation", s.Federation)
			cli.Row(w, "voters", strings.Join(s.Voters, " "))
			cli.Row(w, "members", strings.Join(s.Members, " "))
			cli.Row(w, "version", s.Version)
			cli.Row(w, "draining", drainWord(s.Drain))
			cli.Row(w, "estimates", calibrationText(s.Estimates))
			cli.Row(w, "outputs", outputsText(s.Outputs))
			if s.Outputs.Trouble != "" {
				cli.Row(w, "  trouble", s.Outputs.Trouble)
			}
			for _, h := range s.Handlers {
				cli.Row(w, "handler "+h.Name, h.Status)
				if h.Trouble != "" {
					cli.Row(w, "  trouble", h.Trouble)
				}
			}
		})
	cmd.Flags().BoolVar(&hash, "hash", true, "have the state's hash computed")
	return cmd
}

// leaderText says who leads, and why it is there.
func leaderText(s wire.Status) string {
	if s.LeaderWhy == "" {
		return s.Leader
	}
	return s.Leader + " (" + s.LeaderWhy + ")"
}

// outputsText says what is kept of the output of ended attempts.
func outputsText(o wire.Outputs) string {
	const mib = 1 << 20
	text := fmt.Sprintf("of %d attempts, %.1f of %d MiB", o.Kept, float64(o.Bytes)/mib, o.MaxBytes/mib)
	if o.Oldest != nil {
		text += ", the oldest of " + o.Oldest.Local().Format(time.DateTime)
	}
	if o.RemovedByAge+o.RemovedByBytes > 0 {
		text += fmt.Sprintf("; removed %d by age, %d for room", o.RemovedByAge, o.RemovedByBytes)
	}
	if o.Brought > 0 || o.Waiting > 0 {
		text += fmt.Sprintf("; %d brought home from other sites, %d to come", o.Brought, o.Waiting)
	}
	return text
}

// comparedText says how a broker's state compares with other brokers'.
func comparedText(c wire.Compared) string {
	text := "-"
	switch {
	case len(c.With) > 0:
		text = fmt.Sprintf("the same as %s at entry %d", strings.Join(c.With, " "), c.Index)
	case c.Index > 0:
		text = fmt.Sprintf("the same as nobody at entry %d", c.Index)
	}
	if len(c.Differs) > 0 {
		text += "; DIFFERS from " + strings.Join(c.Differs, " ")
	}
	if len(c.Liars) > 0 {
		text += "; two states were SIGNED by " + strings.Join(c.Liars, " ")
	}
	return text
}

// calibrationText words how a broker's estimates came out.
func calibrationText(c wire.Calibration) string {
	if c.Held == nil {
		return fmt.Sprintf("none judged so far; %d wait for their start", c.Open)
	}
	return fmt.Sprintf("of the last %d, %.0f%% started within their p90; %d wait for their start", c.Starts, 100**c.Held, c.Open)
}
