package jobcmd

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

func whyCommand(a *cli.App) *cobra.Command {
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
			c, err := a.Client()
			if err != nil {
				return err
			}
			why, err := c.Why(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showWhy(a, why)
		},
	}
}

// showDryRun tells what would become of jobs; nothing is submitted.
func showDryRun(a *cli.App, cmd *cobra.Command, specs [][]byte, s submission) error {
	if s.wait || s.follow || s.key != "" {
		return cli.Usage("--dry-run submits nothing: omit --wait, --follow and --key")
	}
	if len(specs) != 1 {
		return cli.Usage("--dry-run asks about one job; %s holds %d", s.file, len(specs))
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	why, err := c.DryRun(cmd.Context(), specs[0], client.SubmitOptions{Strict: s.strict})
	if err != nil {
		return err
	}
	return showWhy(a, why)
}

func showWhy(a *cli.App, y wire.Why) error {
	_, a.Over = cli.EndCodes[y.State]
	return a.Show(y, func(w io.Writer) {
		if y.ID != "" {
			cli.Row(w, "job", y.ID)
		}
		if y.User != "" {
			cli.Row(w, "user", y.User)
		}
		cli.Row(w, "state", y.State)
		if y.CancelledBy != "" {
			cli.Row(w, "cancelled by", y.CancelledBy)
		}
		cli.Row(w, "tasks waiting", y.Waiting)
		if y.Priority != 0 {
			cli.Row(w, "priority", y.Priority)
		}
		cli.Row(w, "in short", y.Summary)
		for i := range y.Notices {
			cli.Row(w, "not told of its end", noticeWords(&y.Notices[i]))
		}
		if y.Ahead == nil {
			return
		}
		if y.Turn != "" { // else no site can run it, and nothing goes before it
			cli.Row(w, "whose turn", y.Turn)
			cli.Row(w, "place", placeText(y.Ahead))
		}
		cli.Row(w, "starts", estimateText(y.Estimate))
		fmt.Fprintln(w)
		cli.Row(w, "SITE", "WHY", "FITS NOW", "IN WORDS")
		for _, x := range y.Sites {
			cli.Row(w, x.Site, x.Why, x.Slots, x.Text)
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
	text := fmt.Sprintf("within %s (even odds) to %s (meant to hold for nine of ten), from the last %d waits", span(*e.P50), span(*e.P90), e.Waits)
	if e.Calibrated {
		text += " with about as much ahead"
	}
	if e.Held == nil {
		return text + "; none judged so far"
	}
	return fmt.Sprintf("%s; that held for %.0f%% of the last %d", text, 100**e.Held, e.Starts)
}

// span rounds seconds up to what means something.
func span(seconds float64) string {
	d := time.Duration(math.Ceil(min(max(seconds, 0), math.MaxInt32))) * time.Second
	if d > time.Hour {
		d = d.Round(time.Minute)
	}
	return d.String()
}
