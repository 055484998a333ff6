package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestGossipSeedsAreKept: a broker whose state is not there yet knows the gossip
// addresses of the last time; a damaged file is as none.
func TestGossipSeedsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gossip.json")
	some := []string{"127.0.0.1:1", "127.0.0.1:2"}
	if got := (&gossipSeeds{path: path}).addresses(nil); len(got) > 0 {
		t.Errorf("nothing was kept, and yet %v", got)
	}
	if got := (&gossipSeeds{path: path}).addresses(some); !slices.Equal(got, some) {
		t.Errorf("%v, not %v", got, some)
	}
	if got := (&gossipSeeds{path: path}).addresses(nil); !slices.Equal(got, some) {
		t.Errorf("%v was kept, not %v", got, some)
	}
	if err := os.WriteFile(path, []byte(`["127.0.0.1:1`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := (&gossipSeeds{path: path}).addresses(nil); len(got) > 0 {
		t.Errorf("of a damaged file %v", got)
	}
}
