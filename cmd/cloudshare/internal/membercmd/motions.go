package membercmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// named is a command about one name that shows one answer.
func named[T any](a *cli.App, use, short, example string,
	ask func(ctx context.Context, c *client.Client, name string) (T, error), table func(io.Writer, T),
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			v, err := ask(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return a.Show(v, func(w io.Writer) { table(w, v) })
		},
	}
}

func showOutcome(w io.Writer, m wire.Motion) { fmt.Fprintln(w, cli.Outcome(m)) }

func motionsCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := cli.ShowCommand(a, "motions", "Show what the electors are to decide",
		"  cloudshare motions\n  cloudshare motions --all",
		func(cmd *cobra.Command, c *client.Client) (wire.List[wire.Motion], error) {
			if all {
				return c.Motions(cmd.Context(), "")
			}
			return c.Motions(cmd.Context(), "open")
		}, showMotions)
	cmd.Long = `Show the motions that are open, or with --all those that were decided, too, as far as they are kept. A motion
passes once more than half of the electors agree: cloudshare approve, or reject, with its number or its site's name.`
	cmd.Flags().BoolVar(&all, "all", false, "those that were decided, too")
	return cmd
}

func showMotions(w io.Writer, l wire.List[wire.Motion]) {
	cli.Row(w, "MOTION", "WHAT", "BY", "STATE", "YES", "NO", "OF", "UNTIL", "WAITS FOR")
	for _, m := range l.Items {
		cli.Row(w, m.Number, cli.About(m), m.By, m.State, m.Yes, m.No, m.Electors, m.Until, motionWaits(m))
	}
	for _, m := range l.Items {
		if m.State != "open" {
			continue
		}
		switch {
		case m.What == "admit" && m.Key != "":
			fmt.Fprintf(w, "\n%d: %s shows the key %s; compare it with what its operator sees (cloudshare key show)\n",
				m.Number, m.Site, m.Key)
		case m.What == "rebind":
			fmt.Fprintf(w, "\n%d: the key would be %s\n", m.Number, m.Key)
		}
	}
}

func motionWaits(m wire.Motion) string {
	if m.State != "open" {
		return ""
	}
	return cli.Waiting(m.Missing, m.Needs)
}

// voteCommand is `approve` or `reject`.
func voteCommand(a *cli.App, yes bool) *cobra.Command {
	verb := "reject"
	if yes {
		verb = "approve"
	}
	cmd := named(a, verb+" NAME|NUMBER", strings.ToUpper(verb[:1])+verb[1:]+" a motion, as this site's vote",
		fmt.Sprintf("  cloudshare %s lab-2\n  cloudshare %s 7", verb, verb),
		func(ctx context.Context, c *client.Client, name string) (wire.Motion, error) {
			return c.Vote(ctx, name, yes)
		},
		func(w io.Writer, m wire.Motion) {
			showOutcome(w, m)
			if m.What == "admit" && m.Key != "" && yes {
				fmt.Fprintf(w, "%s shows the key %s\n", m.Site, m.Key)
			}
		})
	cmd.Long = `Vote on a motion for the site of the broker at --addr, which must be an elector. A motion is named by its
number, or by the site that it is about if no other open one is about it. The vote may be changed until the motion is
decided.`
	return cmd
}
