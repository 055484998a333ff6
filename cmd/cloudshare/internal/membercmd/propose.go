package membercmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

const moreThanHalf = `

More than half of the electors must agree; the answer says who is still to be asked. Whoever has this proposed already
is agreed with.`

// proposal is a command that proposes something about one site.
func proposal(a *cli.App, use, short, example, long string, what func() string) *cobra.Command {
	cmd := named(a, use, short, example,
		func(ctx context.Context, c *client.Client, site string) (wire.Motion, error) {
			return c.Propose(ctx, wire.MotionRequest{What: what(), Site: site})
		}, showOutcome)
	cmd.Long = long + moreThanHalf
	return cmd
}

func fixed(what string) func() string { return func() string { return what } }

func banCommand(a *cli.App) *cobra.Command {
	return proposal(a, "ban NAME", "Propose to expel a site", "  cloudshare ban lab-2",
		`Propose to expel a site. Once that is decided nobody talks to it any more: its connections are closed, what runs
there is started elsewhere, its own jobs wait, the invitations that it has made end, and it votes no more. Its name and
its account stay its own.`, fixed("ban"))
}

func unbanCommand(a *cli.App) *cobra.Command {
	return proposal(a, "unban NAME", "Propose to take the expulsion of a site back", "  cloudshare unban lab-2",
		`Propose to take the expulsion of a site back. It returns with its key, its jobs and its account, and without a
vote.`, fixed("unban"))
}

func electorCommand(a *cli.App) *cobra.Command {
	remove := false
	cmd := proposal(a, "elector NAME", "Propose to give a site a vote, or to take it",
		"  cloudshare elector lab-2\n  cloudshare elector --remove lab-2",
		`Propose to give a site a vote, or with --remove to take it. Electors decide who the members are, and their brokers
keep the federation's log. The last one's vote cannot be taken.`, func() string {
			if remove {
				return "no-elector"
			}
			return "elector"
		})
	cmd.Flags().BoolVar(&remove, "remove", false, "take the vote")
	return cmd
}

func rebindCommand(a *cli.App) *cobra.Command {
	cmd := named(a, "rebind NAME KEY", "Propose to give a site's name to another key",
		"  cloudshare rebind lab-2 csk_tprsq54vsb4asqd6crbz74my2w74pxhg7g6hipftnekg6yiljaaugd5njy", nil, showOutcome)
	cmd.Args = cobra.ExactArgs(2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.Client()
		if err != nil {
			return err
		}
		m, err := c.Propose(cmd.Context(), wire.MotionRequest{What: "rebind", Site: args[0], Key: args[1]})
		if err != nil {
			return err
		}
		return a.Show(m, func(w io.Writer) { showOutcome(w, m) })
	}
	cmd.Long = `Propose to give a site's name, with its account and its jobs, to another key: when the site has lost both its
key and its recovery key. The key is what cloudshare key show prints at the site, by its operator's word. Whoever has
the old keys is nobody then. A site that has its recovery key needs nobody: cloudshare key recover.` + moreThanHalf
	return cmd
}

func forgetCommand(a *cli.App) *cobra.Command {
	return proposal(a, "forget NAME", "Propose to give up a site that is away", "  cloudshare forget lab-2",
		`Propose to give up a site that is away and will not come back: its waiting jobs end as lost, for good. It stays a
member, and may return. A site that is here leaves by itself: cloudshare leave --forget.`, fixed("forget"))
}
