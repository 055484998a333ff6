// Package credentials is who a site is, by what its data folder holds: its own key, and the roster of those that it
// knows. The broker opens it, and so do the commands that work on a stopped broker's data and ask others.
package credentials

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
)

// Credentials are a site's key and the roster by which it knows the others.
type Credentials struct {
	Key   identity.Key
	Trust *truststore.Store
	Net   *relay.Network // by which it talks to other brokers
}

// Open returns the credentials of a site whose key is at hand. denied are sites that it does not talk to, whatever the
// federation has decided.
func Open(dataDir string, key identity.Key, denied []string) (*Credentials, error) {
	trust, err := truststore.Open(filepath.Join(dataDir, config.RosterFile), denied)
	if err != nil {
		return nil, err
	}
	own, err := relay.NewIdentity(key, trust)
	if err != nil {
		return nil, err
	}
	trust.OnChange(func() { own.Recheck() })
	return &Credentials{Key: key, Trust: trust, Net: &relay.Network{Identity: own}}, nil
}

// Of returns the credentials of a stopped broker's data folder.
func Of(dataDir string) (*Credentials, error) {
	path := filepath.Join(dataDir, config.KeyFile)
	key, err := identity.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing: no broker of this version has run on that folder, or its key was moved away",
			identity.ErrKeyFile, path)
	}
	if err != nil {
		return nil, err
	}
	return Open(dataDir, key, nil)
}

// RosterOf returns what the store keeps of the replicated state's roster.
func RosterOf(federation [16]byte, changed uint64, c roster.Contents) truststore.Roster {
	r := truststore.Roster{Federation: federation, Index: changed, Members: make([]truststore.Entry, 0, len(c.Members))}
	for _, m := range c.Members {
		e := truststore.Entry{
			Site: m.Site, Key: identity.Public(m.Key), Elector: m.Elector, Banned: m.Banned,
			Deciding: m.Deciding(command.EpochOf(changed)),
		}
		if by := c.Expulsion(m.Site); m.Banned && by != nil {
			e.Motion = by.Number
		}
		r.Members = append(r.Members, e)
	}
	return r
}

// Founded is the roster of a federation that a site is about to found: it knows nobody but itself.
func Founded(federation [16]byte, site string, key identity.Public) truststore.Roster {
	founder := truststore.Entry{Site: site, Key: key, Elector: true, Deciding: true}
	return truststore.Roster{Federation: federation, Members: []truststore.Entry{founder}}
}
