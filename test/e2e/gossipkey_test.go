package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/membership"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// gossipKey is what a broker keeps to take part in gossip.
type gossipKey struct {
	Lineage    [16]byte
	Generation uint64
	Key        [32]byte
}

// keyOfGossip returns the newest one that a site of a federation was told.
func keyOfGossip(t *testing.T, s *testbed.Site) (key gossipKey) {
	t.Helper()
	await(t, s.Name+" keeps a key of gossip", func() error {
		text, err := os.ReadFile(filepath.Join(s.Dir, "data", "gossip.json"))
		if err == nil {
			err = json.Unmarshal(text, &key)
		}
		if err == nil && key.Generation == 0 {
			err = fmt.Errorf("there is none in %s", text)
		}
		return err
	})
	return key
}

// listen has somebody who is no site take part in gossip with a site's key, through that site, until the test ends.
func listen(t *testing.T, through *testbed.Site, key gossipKey) *membership.Gossip {
	t.Helper()
	at, err := through.GossipAddress()
	must(t, err)
	g, err := membership.Open(membership.Config{
		Site: "spy", Federation: key.Lineage, Key: key.Key[:], Generation: key.Generation, Listen: "127.0.0.1:0",
		Join: func() []string { return []string{at} },
	})
	must(t, err)
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// hears waits until somebody hears so many sites, besides site-4 and itself.
func hears(t *testing.T, g *membership.Gossip, n int) {
	t.Helper()
	await(t, fmt.Sprintf("it hears %d sites", n), func() error {
		heard := 0
		for _, m := range g.Members() {
			if m.State == membership.Alive && m.Site != "site-4" && m.Site != "spy" {
				heard++
			}
		}
		if heard != n {
			return fmt.Errorf("%d of %+v", heard, g.Members())
		}
		return nil
	})
}
