package keycmd

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/identity"
)

func (k *keys) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup", Short: "Make the recovery key of a site, and print it once", Args: cobra.NoArgs,
		Example: "  cloudshare key backup --data-dir D",
		Long: `Make the recovery key of a site: print its text once, and have the federation take its public half. It replaces
the site's key when that was lost or stolen (cloudshare key recover). Write it down, and keep it away from the broker's
machine: nobody can print it again. Whoever steals the site's key cannot replace it.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return k.backup(cmd.Context()) },
	}
}

func (k *keys) backup(ctx context.Context) error {
	key, err := k.load()
	if err != nil {
		return err
	}
	f, err := k.ask(ctx)
	if err != nil {
		return err
	}
	m, ok := f.find(keyOf, key.Public())
	switch {
	case !ok:
		return f.noMember("key", key.Public())
	case m.Recovery != "":
		return cli.WithExit(cli.ExitRefused, fmt.Errorf("site %s has the recovery key %s already, and no other replaces it: "+
			"if it is lost, have the electors give the name to another key (cloudshare rebind)", m.Site, m.Recovery))
	}
	recovery, text := identity.NewRecovery()
	// First: one that is in force and that nobody has would be worse than one that is printed and not in force.
	if _, err = fmt.Fprintln(k.Out, text); err != nil {
		return fmt.Errorf("print the recovery key: %w", err)
	}
	if _, err = f.replace(ctx, m, key, recovery.Public(), key, false); err != nil {
		return fmt.Errorf("the recovery key that was printed is not in force, unless cloudshare members -o json shows %s "+
			"for %s: %w", recovery.Public(), m.Site, err)
	}
	k.Note("This is the recovery key of site %s; it is not shown again. Write it down, and keep it away from this machine.",
		m.Site)
	return nil
}

func (k *keys) recoverCommand() *cobra.Command {
	var file, join string
	cmd := &cobra.Command{
		Use: "recover", Short: "Replace a lost or stolen key by the recovery key", Args: cobra.NoArgs,
		Example: "  cloudshare key recover --data-dir D < recovery.txt\n" +
			"  cloudshare key recover --data-dir D --join @again --file recovery.txt",
		Long: `Replace a site's key, which was lost or stolen, by a new one in the data folder: the recovery key, read from
standard input or --file, signs for it. The site's own broker passes that on, where it runs; where its data are lost,
any member's does: have its operator run cloudshare invite --again SITE, and give that text with --join. Whoever has the
old key is nobody then: its connections end, and what the site ran is started elsewhere. Start the site's broker
afterwards, by the same text if its data were lost.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if join != "" {
				return k.recoverBy(cmd.Context(), join, file)
			}
			return k.recover(cmd.Context(), file)
		},
	}
	cmd.Flags().StringVar(&join, "join", "", "reach a member by the `TEXT` of cloudshare invite --again SITE: the text itself, @FILE, or -")
	cmd.Flags().StringVar(&file, "file", "-", "read the recovery key from this `FILE`; - = standard input")
	return cmd
}

// maxRecovery bounds what is read of a recovery key, in bytes.
const maxRecovery = 4 << 10

func (k *keys) readRecovery(file string) (identity.Key, error) {
	in := k.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return identity.Key{}, cli.Usage("read the recovery key: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRecovery))
	if err != nil {
		return identity.Key{}, fmt.Errorf("read the recovery key: %w", err)
	}
	key, err := identity.ParseRecovery(string(text))
	if err != nil {
		return key, cli.Usage("%w", err)
	}
	return key, nil
}
