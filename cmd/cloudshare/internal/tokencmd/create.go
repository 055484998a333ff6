package tokencmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/access"
)

func createCommand(a *cli.App) *cobra.Command {
	var in wire.TokenRequest
	var within time.Duration
	var out string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a token: print its text, once", Args: cobra.ExactArgs(1),
		Example: "  cloudshare token create alice --for 90d > alice.token\n" +
			"  cloudshare token create ci --user alice --out ci.token\n" +
			"  cloudshare token create prometheus --role read-only --out prometheus.token",
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Name = args[0]
			if cmd.Flags().Changed("for") {
				in.For = within.String()
			}
			if in.User == "" && in.Role == string(access.User) {
				if !access.ValidUser(in.Name) {
					return cli.Usage("--user is missing: %q is no user's name, which has small letters, digits, '.', '_', '-' or '@'", in.Name)
				}
				in.User = in.Name
			}
			return create(cmd.Context(), a, in, out)
		},
	}
	cmd.Long = `Make a token for somebody who is to ask this site's broker. NAME says what it is for; --user says whose it is, the
name that its jobs carry: without it, of role user, that is NAME. The text alone goes to standard output, or into the
file of --out, which must not be there and which only its owner can read. It is a secret, and nobody keeps it: if it is
lost, revoke it and make another. Who has it names the file with --token-file or CLOUDSHARE_API_TOKEN_FILE.

Roles: read-only looks, user submits jobs and ends them, operator does everything at this site. The token holds at this
site's broker only.`
	f := cmd.Flags()
	f.StringVar(&in.User, "user", "", "whose it is: small letters, digits, '.', '_', '-' or '@' (default with role user: NAME)")
	f.StringVar(&in.Role, "role", string(access.User), "read-only, user or operator")
	cli.DurationVar(f, &within, "for", 0, "how long it holds, e.g. 90d, 2w or 36h (default: until it is revoked)")
	f.StringVar(&out, "out", "", "write the text into a new `FILE`")
	return cmd
}

func create(ctx context.Context, a *cli.App, in wire.TokenRequest, out string) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	file, err := cli.NewSecretFile(out)
	if err != nil {
		return err
	}
	made, err := c.CreateToken(ctx, in)
	if file != nil {
		err = file.Keep(made.Text, "revoke "+made.ID+" (cloudshare token revoke), and make another", err)
	}
	if err != nil {
		return err
	}
	if file != nil {
		made.Text = "" // it is in the file only
	}
	if err = a.ShowSecret(made.Text, made); err != nil {
		return err
	}
	holder := made.User
	if holder == "" {
		holder = "the site"
	}
	until := "until it is revoked"
	if made.Expires != nil {
		until = "until " + cli.Cell(made.Expires)
	}
	a.Note("%s (%s) is a token of %s, role %s, %s. It is a secret: send it to its user alone.",
		made.ID, cli.Cell(made.Name), holder, made.Role, until)
	return nil
}
