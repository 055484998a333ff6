package logincmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func logoutCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "End the login at the broker's site", Args: cobra.NoArgs,
		Example: "  cloudshare logout\n  cloudshare logout --context lab-a",
		Long: `Forget the tokens that cloudshare login has kept for the broker at --addr, and have the provider end the login, so
that nobody gets further tokens by it. What is kept here is forgotten first, whatever the provider answers. If it is not
told, because it does not answer or has no way for that, this says so: end the login there then, if somebody else may
have read the tokens. The token that was sent last holds until its end, which is told, too; commands that still run go
on until then.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return logout(cmd.Context(), a) },
	}
}

func logout(ctx context.Context, a *cli.App) error {
	addr, err := a.Resolve(a.Addr)
	if err != nil {
		return err
	}
	was, err := a.Contexts().EndLogin(addr)
	switch {
	case err != nil:
		return err
	case was == nil:
		a.Note("nobody was logged in at %s", a.Addr)
		return nil
	}
	a.Note("logged out at %s", a.Addr)
	tellRemains(a, *was, was.Revoke(ctx))
	return nil
}

// tellRemains says what else ended, and what does not. What does not is no note: who lends the machine needs it.
func tellRemains(a *cli.App, was cli.Login, err error) {
	issuer := cli.Cell(was.Issuer)
	switch {
	case err == nil:
		a.Note("%s has ended the login", issuer)
	case was.Renewable():
		fmt.Fprintf(a.Err, "%s has not ended the login: %s: whoever has copied it gets tokens by it until the provider ends it: end it there\n",
			issuer, strings.Join(strings.Fields(err.Error()), " "))
	}
	if until := was.Holds(); time.Now().Before(until) {
		fmt.Fprintf(a.Err, "the token that was sent last holds at the broker until %s\n", cli.Cell(until))
	}
}
