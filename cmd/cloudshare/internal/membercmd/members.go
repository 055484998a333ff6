package membercmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func membersCommand(a *cli.App) *cobra.Command {
	cmd := cli.ShowCommand(a, "members", "Show who the members of the federation are, and who decides",
		"  cloudshare members\n  cloudshare members -o json",
		func(cmd *cobra.Command, c *client.Client) (wire.List[wire.Member], error) {
			return c.Members(cmd.Context())
		},
		showMembers)
	cmd.Long = `Show the sites that were admitted, by admission, with their keys. A site is who has the secret half
of its key. Sites with a vote decide who is admitted and expelled, and the policy: more than half of them must agree.
A vote that is "away" does not count until its site has been here since the last recovery of the federation.`
	return cmd
}

func showMembers(w io.Writer, l wire.List[wire.Member]) {
	cli.Row(w, "SITE", "KEY", "VOTE", "STATE", "SINCE")
	var deciding []string
	for _, m := range l.Items {
		state := "member"
		if m.Banned {
			state = "expelled"
		}
		if m.Deciding {
			deciding = append(deciding, m.Site)
		}
		cli.Row(w, m.Site, m.Key, voteText(m), state, m.Since)
	}
	if n := len(deciding); n > 0 {
		fmt.Fprintf(w, "\nWhat %d of %s agree to is decided.\n", n/2+1, strings.Join(deciding, ", "))
	}
}

func voteText(m wire.Member) string {
	switch {
	case m.Deciding:
		return "yes"
	case m.Elector:
		return "away"
	}
	return "no"
}

func invitationsCommand(a *cli.App) *cobra.Command {
	return cli.ShowCommand(a, "invitations", "Show who was invited, and what keeps them from being admitted",
		"  cloudshare invitations",
		func(cmd *cobra.Command, c *client.Client) (wire.List[wire.Invitation], error) {
			return c.Invitations(cmd.Context())
		},
		func(w io.Writer, l wire.List[wire.Invitation]) {
			cli.Row(w, "SITE", "BY", "VOTE", "STATE", "UNTIL", "MOTION", "WAITS FOR")
			for _, v := range l.Items {
				cli.Row(w, v.Site, v.By, cli.YesNo(v.Vote), v.State, v.Until, v.Motion, invitationWaits(v))
			}
			for _, v := range l.Items {
				if v.State == "claimed" {
					fmt.Fprintf(w, "\n%s shows the key %s\n", v.Site, v.Claimant)
				}
			}
		})
}

// invitationWaits says what an invitation waits for.
func invitationWaits(v wire.Invitation) string {
	switch {
	case v.State != "open" && v.State != "claimed":
		return ""
	case v.Needs > 0 && v.State == "open":
		return cli.Waiting(v.Waiting, v.Needs) + ", and its use"
	case v.Needs > 0:
		return cli.Waiting(v.Waiting, v.Needs)
	}
	return "its use"
}
