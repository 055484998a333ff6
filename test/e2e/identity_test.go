package e2e

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
)

// networkOf is the way of a member to the others, whose data folder this is: with its key, and the roster that it has.
func networkOf(t *testing.T, dir string) *relay.Network {
	t.Helper()
	key, err := identity.Load(filepath.Join(dir, "key"))
	must(t, err)
	return networkBy(t, dir, key)
}

// strangersNetwork is the way of somebody who knows all members, and whom none of them knows.
func strangersNetwork(t *testing.T, dir string) *relay.Network {
	t.Helper()
	return networkBy(t, dir, identity.Generate())
}

func networkBy(t *testing.T, dir string, key identity.Key) *relay.Network {
	t.Helper()
	trust, err := truststore.Open(filepath.Join(dir, "roster"), nil)
	must(t, err)
	own, err := relay.NewIdentity(key, trust)
	must(t, err)
	return &relay.Network{Identity: own}
}

// refusedAs reports how a broker refuses a connection of a kind in some name; nil: it does not.
func refusedAs(t *testing.T, from *relay.Network, as string, to relay.Peer, kind relay.Kind, group [16]byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	conn, err := (&relay.Dialer{Net: from, Site: as}).Dial(ctx, to, kind, group)
	if err == nil {
		_ = conn.Close()
	}
	return err
}
