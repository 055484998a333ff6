package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
)

// TestGossipSeedsAreKept: a broker whose state is not there yet knows the gossip
// addresses of the last time; a damaged file is as none.
func TestGossipSeedsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gossip.json")
	some := []string{"127.0.0.1:1", "127.0.0.1:2"}
	if got := (&gossipSeeds{path: path}).addresses(nil, roster.GossipKey{}); len(got) > 0 {
		t.Errorf("nothing was kept, and yet %v", got)
	}
	if got := (&gossipSeeds{path: path}).addresses(some, roster.GossipKey{}); !slices.Equal(got, some) {
		t.Errorf("%v, not %v", got, some)
	}
	if got := (&gossipSeeds{path: path}).addresses(nil, roster.GossipKey{}); !slices.Equal(got, some) {
		t.Errorf("%v was kept, not %v", got, some)
	}
	if err := os.WriteFile(path, []byte(`["127.0.0.1:1`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := (&gossipSeeds{path: path}).addresses(nil, roster.GossipKey{}); len(got) > 0 {
		t.Errorf("of a damaged file %v", got)
	}
}

// TestGossipKeyIsKept: a broker starts with the newest key that it has seen in this lineage.
func TestGossipKeyIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gossip.json")
	here, other := [16]byte{1}, [16]byte{2}
	key := func(n byte) roster.GossipKey { return roster.GossipKey{Generation: uint64(n), Key: [32]byte{n}} }
	opened := func(lineage [16]byte) *gossipSeeds { return &gossipSeeds{path: path, lineage: lineage} }
	s := opened(here)
	s.addresses([]string{"127.0.0.1:1"}, key(3))
	s.addresses(nil, key(0)) // a state that has just begun to be read
	if got := opened(here).key(key(0)); got != key(3) {
		t.Errorf("kept %+v", got)
	}
	if got := opened(here).key(key(4)); got != key(4) {
		t.Errorf("an older one than the state's: %+v", got)
	}
	if got := opened(other).key(key(2)); got != key(2) {
		t.Errorf("one of another lineage: %+v", got)
	}
	opened(other).addresses(nil, key(2))
	if got := opened(other).key(key(1)); got != key(2) {
		t.Errorf("the new lineage's was not kept: %+v", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestGossipOfMembersIsBelieved: everybody's as long as there is no roster; never a banned or denied site's.
func TestGossipOfMembersIsBelieved(t *testing.T) {
	trust, err := truststore.Open(filepath.Join(t.TempDir(), "roster"), []string{"denied"})
	if err != nil {
		t.Fatal(err)
	}
	known := gossipOf(trust)
	if !known("a") {
		t.Error("without a roster a is not believed")
	}
	var members []truststore.Entry
	for i, site := range []string{"a", "banned", "denied"} {
		key := identity.FromSeed([32]byte{byte(i)}).Public()
		members = append(members, truststore.Entry{Site: site, Key: key, Banned: site == "banned"})
	}
	if err = trust.Update(truststore.Roster{Federation: [16]byte{1}, Index: 1, Members: members}); err != nil {
		t.Fatal(err)
	}
	if !known("a") || known("banned") || known("denied") || known("stranger") {
		t.Error("want a alone")
	}
}
