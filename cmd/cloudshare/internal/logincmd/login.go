// Package logincmd has the commands about whom a user asks, and as who: `login`, `logout`, and `context` and
// those below it. It asks a broker where to log in, and the identity provider for tokens.
package logincmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// Commands returns the commands about logins and contexts.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{loginCommand(a), logoutCommand(a), contextCommand(a)}
}

func loginCommand(a *cli.App) *cobra.Command {
	var shared bool
	cmd := &cobra.Command{
		Use: "login", Short: "Log in at the identity provider of the broker's site", Args: cobra.NoArgs,
		Example: "  cloudshare login\n  cloudshare login --context lab-a",
		Long: `Log in at the identity provider of the site whose broker is at --addr. The broker says which one that is. Open the
address that is shown in any browser, on any machine, and confirm the code. From then on the other commands prove by the
provider's tokens who asks; these are kept in ~/.config/cloudshare/contexts.json, which only you can read, and renewed
while the provider allows it.

Confirm a code only if you typed this command yourself just now, and look at the names of provider and client: whoever
has you confirm his code asks as you. The broker is asked by https, but on loopback. One that names another provider or
client than at the last login is refused until cloudshare logout; so is one that names those of another broker, where
your token would count, too, unless you say that both are of one operator (--shared-client).`,
		RunE: func(cmd *cobra.Command, _ []string) error { return login(cmd.Context(), a, shared) },
	}
	cmd.Flags().BoolVar(&shared, "shared-client", false, "other brokers have the same provider and client, and may be sent your token")
	return cmd
}

func login(ctx context.Context, a *cli.App, shared bool) error {
	addr, err := a.Resolve(a.Addr)
	if err != nil {
		return err
	}
	if strings.HasPrefix(addr, "http://") && !cli.OnLoopback(addr) {
		return cli.Usage("log in at %s: it is plain HTTP, by which anybody between could have you log in for him: use https:// in its address", addr)
	}
	c, err := a.NamelessClient(a.Addr)
	if err != nil {
		return err
	}
	at, err := c.Login(ctx)
	if errors.Is(err, client.ErrNoLogin) {
		return cli.WithExit(cli.ExitRefused, fmt.Errorf("%s: %w: ask the site's operator for a token, and name it with --token-file", a.Addr, err))
	}
	if err != nil {
		return err
	}
	l := cli.Login{Issuer: at.Issuer, Client: at.Client, Scopes: at.Scopes}
	if err = a.Contexts().CheckLogin(addr, l, shared); err != nil {
		return err
	}
	if l, err = confirm(ctx, a, l); err != nil {
		return err
	}
	who, err := c.WithToken(l.IDToken).Whoami(ctx)
	if err != nil {
		return err // such as a user without a role: the login is not kept
	}
	if err = a.Contexts().KeepLogin(addr, l); err != nil {
		return err
	}
	a.Note("logged in at site %s as %s, role %s", who.Site, who.User, who.Role)
	return nil
}

// confirm has the user confirm the login in a browser: the device authorization grant (RFC 8628).
func confirm(ctx context.Context, a *cli.App, l cli.Login) (cli.Login, error) {
	ctx, provider, err := l.Provider(ctx)
	if err != nil {
		return l, err
	}
	if provider.Endpoint.DeviceAuthURL == "" {
		return l, fmt.Errorf("%s has no device authorization grant: have the provider allow it for client %s, or use a token of the broker", l.Issuer, l.Client)
	}
	asked, err := provider.DeviceAuth(ctx)
	if err != nil {
		return l, fmt.Errorf("log in at %s: %w", l.Issuer, err)
	}
	// Not a note: without it nobody can log in.
	fmt.Fprintf(a.Err, "Open %s\nand confirm the code %s, for %s as client %s of %s.\n",
		cli.Cell(asked.VerificationURI), cli.Cell(asked.UserCode), a.Addr, cli.Cell(l.Client), cli.Cell(l.Issuer))
	t, err := provider.DeviceAccessToken(ctx, asked)
	if err != nil {
		return l, fmt.Errorf("log in at %s: %w", l.Issuer, err)
	}
	return l.With(t)
}
