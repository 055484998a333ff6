package keycmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/credentials"
	"github.com/cloudshare/cloudshare/node/identity"
)

func (k *keys) rotateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "Replace a site's key by a new one", Args: cobra.NoArgs,
		Example: "  cloudshare key rotate --data-dir D",
		Long: `Replace the key in a data folder by a new one, which the old one signs for, through the broker that runs on it.
Restart that broker at once: the others know it by its new key only. A command that was interrupted, or whose outcome is
not known, is run again: it goes on with the same new key. A restart of the broker is right then, too: it asks the
members which key they have.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return k.rotate(cmd.Context()) },
	}
}

func (k *keys) rotate(ctx context.Context) error {
	key, err := k.load()
	if err != nil {
		return err
	}
	over, err := k.goOn()
	if over || err != nil {
		return err
	}
	f, err := k.ask(ctx)
	if err != nil {
		return k.unsure(err)
	}
	next, err := k.next()
	if err != nil {
		return err
	}
	m, ok := f.find(keyOf, key.Public(), next.Public())
	if !ok {
		return f.noMember("key", key.Public())
	}
	if m.Key != next.Public().String() {
		recovery, err := recoveryKey(m)
		if err != nil {
			return err
		}
		if m, err = f.replace(ctx, m, next, recovery, key, false); err != nil {
			return k.unsure(fmt.Errorf("replace the key of %s: %w", m.Site, err))
		}
	}
	return k.finish(m.Site, next)
}

// recover replaces the key by the recovery key's word.
func (k *keys) recover(ctx context.Context, file string) error {
	if k.dir == "" {
		return cli.Usage("--data-dir is required: the folder of the broker's data, which may be empty")
	}
	recovery, err := k.readRecovery(file)
	if err != nil {
		return err
	}
	over, err := k.goOn()
	if over || err != nil {
		return err
	}
	f, err := k.ask(ctx)
	if err != nil {
		return k.unsure(err)
	}
	m, ok := f.find(recoveryOf, recovery.Public())
	if !ok {
		return f.noMember("recovery key", recovery.Public())
	}
	if err = k.of(m.Site); err != nil {
		return err
	}
	next, err := k.next()
	if err != nil {
		return err
	}
	if m.Key != next.Public().String() {
		if m, err = f.replace(ctx, m, next, recovery.Public(), recovery, true); err != nil {
			return k.unsure(fmt.Errorf("replace the key of %s: %w", m.Site, err))
		}
	}
	return k.finish(m.Site, next)
}

// goOn finishes a replacement that was asked for before, if the broker on the folder has learned since that the members
// have the next key; over: it did, or could not. A broker that they refuse cannot be asked for anything else.
func (k *keys) goOn() (over bool, err error) {
	state, err := config.LatestState(k.dir)
	if err != nil {
		return true, err
	}
	replaced, err := credentials.Replaced(k.dir, state.Site)
	if err != nil || !replaced {
		return err != nil, err
	}
	next, err := k.next()
	if err != nil {
		return true, err
	}
	return true, k.finish(state.Site, next)
}

// unsure adds to an error what to do if the key may have been replaced all the same: its answer may be lost.
func (k *keys) unsure(err error) error {
	var said *client.Problem
	if errors.As(err, &said) && said.Status < http.StatusInternalServerError {
		return err
	}
	if _, cause := os.Lstat(k.path(config.NextKeyFile)); cause != nil {
		return err // nothing was asked for
	}
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	return cli.WithExit(cli.CodeOf(err), fmt.Errorf("%s; the members may have the next key all the same: keep %s, and restart "+
		"the broker, which asks them, or run this again", text, config.NextKeyFile))
}

// of makes the data folder, and refuses one of another site.
func (k *keys) of(site string) error {
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	state, err := config.LatestState(k.dir)
	if err == nil && state.Site != "" && state.Site != site {
		err = cli.Usage("%s holds the data of site %s, and the recovery key is of %s: name the folder of that site", k.dir,
			state.Site, site)
	}
	return err
}

// finish puts the next key in its place.
func (k *keys) finish(site string, next identity.Key) error {
	if err := credentials.Take(k.dir, site, next.Public()); err != nil {
		return err
	}
	k.Note("Site %s has a new key. Restart its broker now: the others know it by the new key only.", site)
	return k.show(shownOf(site, next.Public()))
}
