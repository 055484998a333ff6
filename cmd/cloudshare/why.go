package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "why ID", Short: "Tell why a job waits, and when it will start", Args: oneJob,
		Long: `Tell why a job waits: what goes first and on what ground, why each site does not
run it, and when its next task will probably start.

The order is that of now: standings move with every run. The estimate learns
from what this broker saw; how often its p90 held is told with it.
"cloudshare submit --dry-run" tells the same of a job before it is submitted.`,
		Example: `  cloudshare why site-1.42
  cloudshare why site-1.42 --watch`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			why, err := c.Why(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.showWhy(why)
		},
	}
}

// dryRun tells what would become of jobs; nothing is submitted.
func (a *app) dryRun(cmd *cobra.Command, specs [][]byte, s submission) error {
	if s.wait || s.follow || s.key != "" {
		return usage("--dry-run submits nothing: leave out --wait, --follow and --key")
	}
	if len(specs) != 1 {
		return usage("--dry-run asks about one job; %s holds %d", s.file, len(specs))
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	why, err := c.DryRun(cmd.Context(), specs[0], client.SubmitOptions{Strict: s.strict})
	if err != nil {
		return err
	}
	return a.showWhy(why)
}

func (a *app) showWhy(y wire.Why) error {
	_, a.over = ends[y.State]
	return a.show(y, func(w io.Writer) {
		if y.ID != "" {
			row(w, "job", y.ID)
		}
		row(w, "state", y.State)
		row(w, "tasks waiting", y.Waiting)
		row(w, "in short", y.Summary)
		if y.Ahead == nil {
			return
		}
		if y.Turn != "" { // else no site can run it, and nothing goes before it
			row(w, "whose turn", y.Turn)
			row(w, "place", placeText(y.Ahead))
		}
		row(w, "starts", estimateText(y.Estimate))
		fmt.Fprintln(w)
		row(w, "SITE", "WHY", "FITS NOW", "IN WORDS")
		for _, x := range y.Sites {
			row(w, x.Site, x.Why, x.Slots, x.Text)
		}
	})
}

func placeText(p *wire.WhyAhead) string {
	about := ""
	if !p.Exact {
		about = "about "
	}
	return fmt.Sprintf("%s%d in line: before it stand %d of its own site's tasks and %d of others' (%g cores)", about, p.Place, p.Own, p.Others, p.CPU)
}

// estimateText words an estimate together with what it is worth.
func estimateText(e wire.WhyEstimate) string {
	if e.P50 == nil || e.P90 == nil {
		return "no estimate: " + e.Unknown
	}
	if e.Waits == 0 {
		return "at once, as things stand"
	}
	text := fmt.Sprintf("within %s (even odds) to %s (nine times of ten), from the last %d waits", span(*e.P50), span(*e.P90), e.Waits)
	if e.Calibrated {
		text += " with about as much ahead"
	}
	if e.Held == nil {
		return text + "; none judged so far"
	}
	return fmt.Sprintf("%s; that held for %.0f%% of the last %d", text, 100**e.Held, e.Starts)
}

// calibrationText words how a broker's estimates came out.
func calibrationText(c wire.Calibration) string {
	if c.Held == nil {
		return fmt.Sprintf("none judged so far; %d wait for their start", c.Open)
	}
	return fmt.Sprintf("of the last %d, %.0f%% started within their p90; %d wait for their start", c.Starts, 100**c.Held, c.Open)
}

// span rounds seconds up to what means something.
func span(seconds float64) string {
	d := time.Duration(math.Ceil(min(max(seconds, 0), math.MaxInt32))) * time.Second
	if d > time.Hour {
		d = d.Round(time.Minute)
	}
	return d.String()
}
