package credentials

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
)

// Settle finishes the replacement of a site's key, at the start of its broker. If the saved roster has the site with
// the key that was to follow, that takes the place of the old one, which stays as key.former until Proven; and what the
// data folder holds of the backends is bound to the key that the roster has. settled says that the roster has the site
// with the key that is in place now: then the journal is to be bound to it, too (record.Journal.Succeed). A folder
// without a roster stays as it is.
func Settle(dataDir, site string) (settled bool, err error) {
	want, known, err := rostered(dataDir, site)
	if err != nil || !known {
		return false, err
	}
	next, err := identity.Load(filepath.Join(dataDir, config.NextKeyFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return false, err
	case next.Public() == want:
		if err = swap(dataDir); err != nil {
			return false, err
		}
	}
	key, err := identity.Load(filepath.Join(dataDir, config.KeyFile))
	if err != nil || key.Public() != want {
		return false, ignoreMissing(err)
	}
	for _, dir := range []string{config.RaftDir, config.ZKDir} {
		if err = facade.Succeed(filepath.Join(dataDir, dir), site, want.Node()); err != nil {
			return false, fmt.Errorf("bind %s to the site's next key: %w", dir, err)
		}
	}
	return true, nil
}

// rostered returns the key of a site in the saved roster.
func rostered(dataDir, site string) (key identity.Public, known bool, err error) {
	trust, err := truststore.Open(filepath.Join(dataDir, config.RosterFile), nil)
	if err != nil {
		return key, false, err
	}
	key, known = trust.Key(site)
	return key, known, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Take has the key that was to follow take a site's place, as a member says that it is in force: in the saved roster
// first, so that whatever a crash leaves is finished by Settle. The member may be wrong: see Proven.
func Take(dataDir, site string, next identity.Public) error {
	if err := rename(dataDir, site, next); err != nil {
		return err
	}
	return swap(dataDir)
}

// swap has the key that was to follow take the place of the old one, which stays as key.former. A crash leaves both
// files as they were, or as they are to be.
func swap(dataDir string) error {
	if err := keepFormer(dataDir); err != nil {
		return err
	}
	err := os.Rename(filepath.Join(dataDir, config.NextKeyFile), filepath.Join(dataDir, config.KeyFile))
	if err == nil {
		err = relay.SyncDir(dataDir)
	}
	if err != nil {
		return fmt.Errorf("put the next key in place: %w", err)
	}
	return nil
}

// rename has the saved roster hold a site with its next key, where the broker that would note it has not seen it.
func rename(dataDir, site string, key identity.Public) error {
	trust, err := truststore.Open(filepath.Join(dataDir, config.RosterFile), nil)
	if err != nil {
		return err
	}
	r := trust.Roster()
	r.Members = append([]truststore.Entry(nil), r.Members...)
	for i := range r.Members {
		if r.Members[i].Site == site {
			r.Members[i].Key = key
			return trust.Update(r)
		}
	}
	return nil
}
