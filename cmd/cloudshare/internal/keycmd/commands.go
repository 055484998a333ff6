// Package keycmd has `key` and the commands below it: they show and replace the key in a site's data folder. What they
// want of the federation they ask a broker over HTTP, with a command that proves itself: no secret leaves the machine.
package keycmd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/identity"
)

// keys is a run of one of the commands.
type keys struct {
	*cli.App
	dir string // of the broker
}

// Commands returns the command `key`.
func Commands(a *cli.App) []*cobra.Command {
	k := &keys{App: a}
	cmd := &cobra.Command{
		Use: "key", Short: "Show and replace a site's key", Args: cobra.NoArgs,
		Example: "  cloudshare key show --data-dir D\n  cloudshare key backup --data-dir D",
		Long: `Show and replace the key in a site's data folder. Whoever has its secret half is the site. The recovery key, which
cloudshare key backup makes once, replaces it when it was lost or stolen; keep that away from the broker's machine.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&k.dir, "data-dir", "", "the broker's data folder (required)")
	cmd.AddCommand(k.showCommand(), k.backupCommand(), k.rotateCommand(), k.rotatePayloadCommand(), k.recoverCommand())
	return []*cobra.Command{cmd}
}

func (k *keys) path(name string) string { return filepath.Join(k.dir, name) }

// load reads the site's key.
func (k *keys) load() (identity.Key, error) {
	if k.dir == "" {
		return identity.Key{}, cli.Usage("--data-dir is required: the folder of the broker's data")
	}
	key, err := identity.Load(k.path(config.KeyFile))
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%s has no key: the broker makes it at its first start", k.dir)
	}
	return key, err
}

// next reads the key that is to follow, or makes it: a command that was interrupted goes on with the same one.
func (k *keys) next() (identity.Key, error) {
	path := k.path(config.NextKeyFile)
	key, err := identity.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		key = identity.Generate()
		err = key.Save(path)
	}
	return key, err
}

// federation is what a broker says of the federation.
type federation struct {
	*client.Client
	id      [16]byte
	members []wire.Member
}

func (k *keys) ask(ctx context.Context) (*federation, error) {
	c, err := k.Client()
	if err != nil {
		return nil, err
	}
	status, err := c.Status(ctx, false)
	if err != nil {
		return nil, err
	}
	id, err := uuid.Parse(status.Federation)
	if err != nil {
		return nil, fmt.Errorf("%w: federation %.40q", client.ErrBadAnswer, status.Federation)
	}
	list, err := c.Members(ctx)
	if err != nil {
		return nil, err
	}
	return &federation{c, id, list.Items}, nil
}

// find returns the first member that has one of some keys.
func (f *federation) find(of func(wire.Member) string, keys ...identity.Public) (wire.Member, bool) {
	for _, m := range f.members {
		for _, k := range keys {
			if of(m) == k.String() {
				return m, true
			}
		}
	}
	return wire.Member{}, false
}

func keyOf(m wire.Member) string      { return m.Key }
func recoveryOf(m wire.Member) string { return m.Recovery }

// noMember says that a broker knows nobody with a key.
func (f *federation) noMember(what string, key identity.Public) error {
	return cli.WithExit(cli.ExitRefused, fmt.Errorf("the broker at %s knows no member with the %s %s: name one of its "+
		"federation with --addr, and see cloudshare members", f.Addr(), what, key))
}

// replace has a member's keys replaced: by signs, and so does the next key, if it is another one.
func (f *federation) replace(
	ctx context.Context, m wire.Member, next identity.Key, recovery identity.Public, by identity.Key, byRecovery bool,
) (wire.Member, error) {
	c := &command.Rekey{
		Site: m.Site, Generation: m.Generation, Key: signature.Key(next.Public()), Recovery: signature.Key(recovery),
		ByRecovery: byRecovery,
	}
	sign(c, f.id, by, next)
	text := command.Append(nil, command.Command{ID: command.ID{Site: m.Site}, Body: c})
	return f.ReplaceKey(ctx, m.Site, text)
}

// sign has a replacement of keys signed by the one that may order it, and by the next key.
func sign(c *command.Rekey, federation [16]byte, by, next identity.Key) {
	signed := c.Signed(federation)
	c.By = signature.Signature(by.Sign(command.SignedKey, signed...))
	c.ByNew = signature.Signature(next.Sign(command.SignedKey, signed...))
}

// recoveryKey returns a member's, the zero Public if it has none.
func recoveryKey(m wire.Member) (identity.Public, error) {
	if m.Recovery == "" {
		return identity.Public{}, nil
	}
	return identity.ParsePublic(m.Recovery)
}

// shown is what the commands show of a key.
type shown struct {
	Site string `json:"site,omitempty"`
	Key  string `json:"key"`
	Node string `json:"node"`
	Next string `json:"next,omitempty"`
}

func shownOf(site string, key identity.Public) shown {
	id := key.Node()
	return shown{Site: site, Key: key.String(), Node: hex.EncodeToString(id[:])}
}

func (k *keys) show(s shown) error {
	return k.Show(s, func(w io.Writer) {
		cli.Row(w, "site", s.Site)
		cli.Row(w, "key", s.Key)
		cli.Row(w, "node", s.Node)
		if s.Next != "" {
			cli.Row(w, "next", s.Next)
		}
	})
}

func (k *keys) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show a site's public key", Args: cobra.NoArgs, Example: "  cloudshare key show --data-dir D",
		Long: `Show the public half of the key in a data folder, and the node id, which is its hash. It asks nobody. This is what
another operator compares before a site is approved.`,
		RunE: func(*cobra.Command, []string) error {
			key, err := k.load()
			if err != nil {
				return err
			}
			state, err := config.LatestState(k.dir)
			if err != nil {
				return err
			}
			s := shownOf(state.Site, key.Public())
			if next, err := identity.Load(k.path(config.NextKeyFile)); err == nil {
				s.Next = next.Public().String()
			}
			return k.show(s)
		},
	}
}
