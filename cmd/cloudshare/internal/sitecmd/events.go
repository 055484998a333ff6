package sitecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/fsm"
)

func eventsCommand(a *cli.App) *cobra.Command {
	q := client.EventQuery{Patience: cli.Patience}
	cmd := &cobra.Command{
		Use: "events", Short: "Print what happens in the federation, as it happens", Args: cobra.NoArgs,
		Long: `Print what happens in the federation, as it happens: date, log entry, kind and
what it is about, one event a line; with -o json one JSON object a line.

What the federation's log holds is the same at every broker. A job that runs at
home, outside the log, is told by its own site's broker only.`,
		Example: `  cloudshare events
  cloudshare events --kind job --kind task.ended --label team=render -o json
  cloudshare events --from 120 --once        # what is held since entry 120`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			for e, err := range c.Events(cmd.Context(), q) {
				switch {
				case errors.Is(err, client.ErrEventsMissed):
					a.Note("%s", cli.Explain(err))
					continue
				case cmd.Context().Err() != nil:
					return nil // told to stop, as following ends
				case err != nil:
					return err
				}
				if err := showEvent(a, e); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cli.Choices(cmd, &q.Kinds, "kind", eventKinds(), "only this `KIND` (task.ended) or group (task); may be repeated")
	f := cmd.Flags()
	f.StringVar(&q.From, "from", "", "begin after this event's `ID` or entry's number (default now)")
	f.StringVar(&q.Job, "job", "", "only events of this job")
	f.StringVar(&q.Site, "site", "", "only events of this site and its jobs")
	f.StringArrayVar(&q.Labels, "label", nil, "only of jobs with this `KEY=VALUE` (may be repeated)")
	f.BoolVar(&q.Once, "once", false, "print what the broker holds after --from, and end")
	return cmd
}

// eventKinds returns the groups of events, and then the kinds.
func eventKinds() []string {
	var groups, kinds []string
	for _, k := range fsm.EventKinds() {
		kind := k.String()
		kinds = append(kinds, kind)
		if group, _, _ := strings.Cut(kind, "."); !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return append(groups, kinds...)
}

// showEvent prints one event at once.
func showEvent(a *cli.App, e wire.Event) error {
	switch a.Format {
	case "json":
		text, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("write json: %w", err)
		}
		_, err = fmt.Fprintf(a.Out, "%s\n", text)
		return err
	case "yaml":
		fmt.Fprintln(a.Out, "---")
		return cli.WriteYAML(a.Out, e)
	}
	_, err := fmt.Fprintf(a.Out, "%s  %6d  %-16s  %s\n", cli.Cell(e.Time), e.Index, e.Kind, cli.Cell(strings.Join(eventWords(e), " ")))
	return err
}

// eventWords tells an event to people.
func eventWords(e wire.Event) []string {
	var words []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	switch {
	case e.Task != nil && e.Count > 1:
		add(true, "%s/%d–%d", e.Job, *e.Task, *e.Task+e.Count-1)
	case e.Task != nil:
		add(true, "%s/%d", e.Job, *e.Task)
	case e.Job != "":
		add(true, "%s (%s)", e.Job, cli.Plural(int64(e.Count), "task"))
	}
	add(e.User != "", "of %s", e.User)
	add(e.Attempt > 1, "attempt %d", e.Attempt)
	add(e.Site != "" && e.Job == "", "%s", e.Site)
	add(e.Site != "" && e.Job != "", "at %s", e.Site)
	add(e.Kind == "site.offered" && e.Resources != nil, "lends %v cores", coresOf(e))
	add(e.Outcome != "", "%s", e.Outcome)
	add(e.By != "", "by %s", e.By)
	add(e.ExitCode != nil && *e.ExitCode != 0, "exit %v", cli.Cell(e.ExitCode))
	add(e.Signal != nil, "signal %v", cli.Cell(e.Signal))
	add(e.RunMs > 0, "after %.3g s", float64(e.RunMs)/1000)
	add(e.Reason != "", "(%s)", e.Reason)
	return words
}

func coresOf(e wire.Event) float64 {
	if e.Resources == nil {
		return 0
	}
	return e.Resources.CPU
}
