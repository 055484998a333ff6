package credentials

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord/enroll"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
)

// askWithin bounds Confirm.
const askWithin = 10 * time.Second

// Confirm asks members, by the key that is to follow a site's, whether that is the site's key by now: if the answer to
// its replacement was lost, they refuse the old one and say nothing to it. It returns the roster that has the next key
// if more than half of the deciding electors beside the site tell it alike; taken false without an error: it is not the
// site's key, or there is none. Errors: nobody answers, too few agree (enroll.ErrNoAgreement), files that cannot be
// read. It changes nothing, and takes 10 s at most.
func Confirm(ctx context.Context, dataDir, site string, denied []string, members []relay.Peer) (
	r truststore.Roster, taken bool, err error,
) {
	next, err := identity.Load(filepath.Join(dataDir, config.NextKeyFile))
	if err != nil {
		return r, false, ignoreMissing(err)
	}
	who, err := Open(dataDir, next, denied)
	if err != nil {
		return r, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	asking := enroll.Asking{Dialer: &relay.Dialer{Net: who.Net, Site: site}}
	if r, err = asking.Refresh(ctx, who.Trust.Roster(), members); err != nil {
		return r, false, fmt.Errorf("ask the members whether %s is the key of %s: %w", next.Public(), site, err)
	}
	taken = slices.ContainsFunc(r.Members, func(m truststore.Entry) bool {
		return m.Site == site && m.Key == next.Public()
	})
	return r, taken, nil
}

// Learn has the saved roster be a newer one, where no broker runs.
func Learn(dataDir string, r truststore.Roster) error {
	trust, err := truststore.Open(filepath.Join(dataDir, config.RosterFile), nil)
	if err != nil {
		return err
	}
	return trust.Update(r)
}

// Replaced reports whether the saved roster has a site with the key that was to follow: its broker has learned that it
// is in force, and was not started since.
func Replaced(dataDir, site string) (bool, error) {
	next, err := identity.Load(filepath.Join(dataDir, config.NextKeyFile))
	if err != nil {
		return false, ignoreMissing(err)
	}
	want, known, err := rostered(dataDir, site)
	return known && next.Public() == want, err
}

// keepFormer has the key that is replaced stay as a file until Proven: only the log shows for certain that the
// federation has the next one.
func keepFormer(dataDir string) error {
	err := os.Link(filepath.Join(dataDir, config.KeyFile), filepath.Join(dataDir, config.FormerKeyFile))
	switch {
	case errors.Is(err, os.ErrNotExist): // it was lost
		return nil
	case errors.Is(err, os.ErrExist): // one that was not proven to be over, either: it is the older one
		return nil
	case err == nil:
		err = relay.SyncDir(dataDir) // before its other name goes
	}
	if err != nil {
		return fmt.Errorf("keep the key of before: %w", err)
	}
	return nil
}

// Proven removes the key of before: the federation's log has the one that is in place.
func Proven(dataDir string) error {
	if err := os.Remove(filepath.Join(dataDir, config.FormerKeyFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the former key: %w", err)
	}
	return nil
}
