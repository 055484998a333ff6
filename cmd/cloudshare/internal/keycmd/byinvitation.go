package keycmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/credentials"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/enroll"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
)

// recoverBy replaces the key of a site that has nothing left but its recovery key: at the peer port of the member that
// has invited it again.
func (k *keys) recoverBy(ctx context.Context, join, file string) error {
	if k.dir == "" {
		return cli.Usage("--data-dir is required: the folder of the broker's data, which may be empty")
	}
	if join == "-" && file == "-" {
		return cli.Usage("--join - and the recovery key are both read from standard input: give one of them by a file")
	}
	v, err := config.ReadInvitation(join, k.In)
	if err != nil {
		return err
	}
	recovery, err := k.readRecovery(file)
	if err == nil {
		err = k.of(v.Site)
	}
	if err != nil {
		return err
	}
	next, err := k.next()
	if err != nil {
		return err
	}
	who, err := credentials.Open(k.dir, next, nil)
	if err != nil {
		return err
	}
	asking := enroll.Asking{Dialer: &relay.Dialer{Net: who.Net, Site: v.Site}}
	roster, err := asking.Replace(ctx, v, func(generation uint64) *command.Rekey {
		return signedBy(recovery, next, v.Site, v.Federation, generation)
	})
	if errors.Is(err, enroll.ErrRefused) {
		err = cli.WithExit(cli.ExitRefused, err)
	}
	if err == nil {
		err = who.Trust.Reset(roster)
	}
	if err == nil {
		err = credentials.Take(k.dir, v.Site, next.Public())
	}
	if err != nil {
		return fmt.Errorf("recover the key of %s: %w", v.Site, err)
	}
	k.Note("Site %s has a new key. Start its broker now; on an empty folder with --join and the same text.", v.Site)
	return k.show(shownOf(v.Site, next.Public()))
}

// signedBy is the replacement of a site's key, by its recovery key, which stays.
func signedBy(recovery, next identity.Key, site string, federation [16]byte, generation uint64) *command.Rekey {
	c := &command.Rekey{
		Site: site, Generation: generation, ByRecovery: true,
		Key: signature.Key(next.Public()), Recovery: signature.Key(recovery.Public()),
	}
	sign(c, federation, recovery, next)
	return c
}
