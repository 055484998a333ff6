package membercmd

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func inviteCommand(a *cli.App) *cobra.Command {
	var noVote, again, ifNeeded bool
	var within time.Duration
	var out string
	cmd := &cobra.Command{
		Use: "invite NAME", Short: "Invite a site: print the token that lets it in, once", Args: cobra.ExactArgs(1),
		Example: "  cloudshare invite lab-2 > lab-2.token\n  cloudshare invite lab-2 --no-vote --for 72h --out lab-2.token",
		RunE: func(cmd *cobra.Command, args []string) error {
			vote := !noVote
			in := wire.InviteRequest{Site: args[0], Vote: &vote, For: within.String()}
			if ifNeeded && (again || out == "") {
				return cli.Usage("--if-needed goes with --out, and not with --again: name the file that is to hold the token")
			}
			if again && (noVote || cmd.Flags().Changed("for")) {
				return cli.Usage("--again is for a member: leave out --no-vote and --for")
			}
			if ifNeeded {
				if over, err := needless(cmd.Context(), a, args[0], out); over || err != nil {
					return err
				}
			}
			if again {
				in = wire.InviteRequest{Site: args[0], Again: true}
			}
			return invite(cmd.Context(), a, in, out)
		},
	}
	cmd.Long = `Invite a site under a name. The token alone goes to standard output, or into the file of --out, which
must not be there and which only its owner can read. It is a secret until it is used: whoever has it joins under that
name. Nobody keeps it; if it is lost, revoke it and invite again. At the new site:

  cloudshare broker --join @FILE

The site is admitted once it has used the token and more than half of the electors have approved it, in either order;
this site's approval, if it has a vote, is given with the invitation. What is pending is shown by
cloudshare invitations. The new site gets a vote, too, if fewer than five have one and --no-vote is not given.

With --again the token is for a member that lost its disk, and nobody else can use it: there, cloudshare key recover
--join @FILE gives it a new key by its recovery key, and cloudshare broker --join @FILE starts it. (A copy of the old
key alone is not enough: the federation remembers that there were data.)

With --if-needed the same command line can run at every start of a service: it waits 30 s at most until the broker is
ready, and invites nobody where FILE holds a token already, or where NAME is a member.`
	f := cmd.Flags()
	f.BoolVar(&again, "again", false, "for a member that comes back on an empty disk, by its recovery key")
	f.BoolVar(&noVote, "no-vote", false, "the site is to lend and borrow only, and decide nothing")
	cli.DurationVar(f, &within, "for", 24*time.Hour, "how long the invitation stands, at most 30d")
	f.StringVar(&out, "out", "", "write the token into a new `FILE`")
	f.BoolVar(&ifNeeded, "if-needed", false, "with --out: succeed without an invitation where FILE is there, or where NAME is a member")
	return cmd
}

func invite(ctx context.Context, a *cli.App, in wire.InviteRequest, out string) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	file, err := cli.NewSecretFile(out)
	if err != nil {
		return err
	}
	v, err := c.Invite(ctx, in)
	if file != nil {
		err = file.Keep(v.Token, "revoke it (cloudshare revoke), and invite again", err)
	}
	if err != nil {
		return err
	}
	if file != nil {
		v.Token = "" // it is in the file only
	}
	if err = a.ShowSecret(v.Token, v); err == nil {
		noteInvited(a, v, out)
	}
	return err
}

// noteInvited says what is to be done next, and by whom.
func noteInvited(a *cli.App, v wire.Invited, out string) {
	if out == "" {
		out = "FILE"
	}
	if v.State == "admitted" {
		a.Note("%s may come back with its key %s; there: cloudshare key recover --join @%[3]s, then cloudshare broker --join @%[3]s",
			v.Site, v.Claimant, out)
	} else {
		a.Note("%s may join until %s, once. Send the token to its operator alone; there: cloudshare broker --join @%s",
			v.Site, cli.Cell(v.Until), out)
	}
	if v.Needs > 0 {
		a.Note("It is admitted once %s approved: cloudshare approve %s, there", has(v.Waiting, v.Needs), v.Site)
	}
	for _, addr := range v.Addresses {
		if host, _, err := net.SplitHostPort(addr); err == nil && net.ParseIP(host).IsLoopback() {
			a.Note("The token names %s, which is reached from this machine only: give the broker another `peer` or "+
				"`advertise` address to invite a site elsewhere", addr)
		}
	}
}

// has puts who must approve in front of a participle.
func has(missing []string, needs int) string {
	verb := " have"
	if needs == 1 {
		verb = " has"
	}
	return cli.Waiting(missing, needs) + verb
}

func revokeCommand(a *cli.App) *cobra.Command {
	cmd := named(a, "revoke NAME", "Revoke the open invitations of a site", "  cloudshare revoke lab-2",
		func(ctx context.Context, c *client.Client, site string) (wire.List[wire.Invitation], error) {
			return c.Revoke(ctx, site)
		},
		func(w io.Writer, l wire.List[wire.Invitation]) {
			for _, v := range l.Items {
				cli.Row(w, v.Site, v.State)
			}
		})
	cmd.Long = `Revoke the invitations of a site that still let somebody in: those that this site has made, or, if it has
a vote, anybody's. A site that was admitted is expelled with cloudshare ban.`
	return cmd
}
