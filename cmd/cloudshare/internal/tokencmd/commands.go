// Package tokencmd has the commands about who may ask a site's broker: `token` and those below it, and `whoami`. It
// asks a broker over HTTP.
package tokencmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// Commands returns the commands about tokens.
func Commands(a *cli.App) []*cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "Make, list and revoke the tokens of a site", Args: cobra.NoArgs,
		Example: "  cloudshare token create alice > alice.token\n  cloudshare token list",
		Long: `Make, list and revoke the tokens by which people and programs ask the site's broker. Only its operator may: with
an operator's token, or without one by --addr unix:///DATA_DIR/api.sock as the broker's user or root.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(createCommand(a), listCommand(a), revokeCommand(a))
	return []*cobra.Command{cmd, whoamiCommand(a)}
}

func listCommand(a *cli.App) *cobra.Command {
	return cli.ShowCommand(a, "list", "Show the tokens of the site, also expired ones", "  cloudshare token list",
		func(cmd *cobra.Command, c *client.Client) (wire.List[wire.Token], error) {
			return c.Tokens(cmd.Context())
		},
		func(w io.Writer, l wire.List[wire.Token]) {
			cli.Row(w, "ID", "NAME", "USER", "ROLE", "CREATED", "EXPIRES", "USED")
			for _, t := range l.Items {
				cli.Row(w, t.ID, t.Name, t.User, t.Role, t.Created, expiry(t), use(t))
			}
		})
}

// expiry says when a token ends.
func expiry(t wire.Token) string {
	if t.Expires == nil {
		return "never"
	}
	return cli.Cell(t.Expires)
}

// use says in which hour a token was used last.
func use(t wire.Token) string {
	if t.Used == nil {
		return "never"
	}
	return t.Used.Local().Format("2006-01-02 15:04")
}

func revokeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token: it is refused from now on", Args: cobra.ExactArgs(1),
		Example: "  cloudshare token revoke 7k2qm3xa",
		Long: `Revoke a token, which cloudshare token list shows with its ID. It is refused from now on, and what is being
answered to it ends: streams of events, followed logs, blocking reads, submissions of many lines, and sessions of
browsers. Its user's jobs stay.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			if err = c.RevokeToken(cmd.Context(), args[0]); err == nil {
				a.Note("%s is revoked", args[0])
			}
			return err
		},
	}
}

func whoamiCommand(a *cli.App) *cobra.Command {
	cmd := cli.ShowCommand(a, "whoami", "Show who asks, as the broker sees it",
		"  cloudshare whoami\n  cloudshare whoami --token-file alice.token -o json",
		func(cmd *cobra.Command, c *client.Client) (wire.Whoami, error) { return c.Whoami(cmd.Context()) },
		func(w io.Writer, v wire.Whoami) {
			cli.Row(w, "site", v.Site)
			cli.Row(w, "user", v.User)
			cli.Row(w, "role", v.Role)
			if v.Token == nil {
				cli.Row(w, "token", "none is needed here")
				return
			}
			cli.Row(w, "token", v.Token.ID)
			cli.Row(w, "name", v.Token.Name)
			cli.Row(w, "expires", expiry(*v.Token))
		})
	cmd.Long = `Show who asks, as the broker at --addr sees it: the user and the role of the token that this command line sends.
A token without a user is the site's own.`
	return cmd
}
