package credentials

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/record"
)

// folder is a data folder of site a: its key, the one that is to follow, a backend's member and a roster.
func folder(t *testing.T, old, next, rostered identity.Key) string {
	t.Helper()
	dir := t.TempDir()
	id := old.Public().Node()
	err := errors.Join(
		old.Save(filepath.Join(dir, config.KeyFile)), next.Save(filepath.Join(dir, config.NextKeyFile)),
		os.MkdirAll(filepath.Join(dir, config.RaftDir), 0o700),
		facade.SaveMember(filepath.Join(dir, config.RaftDir), map[string]any{
			"version": 3, "site": "a", "node": hex.EncodeToString(id[:]), "epoch": uint64(1) << 60,
		}))
	trust, cause := truststore.Open(filepath.Join(dir, config.RosterFile), nil)
	if err = errors.Join(err, cause); err == nil {
		err = trust.Update(Founded([16]byte{7}, "a", rostered.Public()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The next key takes its place once the federation has it, and not before; what the folder holds follows.
func TestSettle(t *testing.T) {
	old, next := identity.FromSeed([32]byte{1}), identity.FromSeed([32]byte{2})
	for _, replaced := range []bool{false, true} {
		want := old
		if replaced {
			want = next
		}
		dir := folder(t, old, next, want)
		for range 2 {
			if settled, err := Settle(dir, "a"); !settled || err != nil {
				t.Fatalf("replaced %t: settled %t, %v", replaced, settled, err)
			}
		}
		key, err := identity.Load(filepath.Join(dir, config.KeyFile))
		state, cause := config.LatestState(dir)
		if err = errors.Join(err, cause); err != nil || key.Public() != want.Public() ||
			state.Node != want.Public().Node() || state.Epoch != 1<<60 {
			t.Errorf("replaced %t: %v, %+v, %v", replaced, key, state, err)
		}
		if _, err = os.Stat(filepath.Join(dir, config.NextKeyFile)); replaced != os.IsNotExist(err) {
			t.Errorf("replaced %t: the next key's file: %v", replaced, err)
		}
	}
}

// A folder of another site, or with a key that nobody knows, stays as it is.
func TestSettleLeavesWhatIsNotTheSites(t *testing.T) {
	old, next, foreign := identity.FromSeed([32]byte{1}), identity.FromSeed([32]byte{2}), identity.FromSeed([32]byte{3})
	dir := folder(t, old, next, foreign)
	for _, site := range []string{"a", "b"} {
		if settled, err := Settle(dir, site); settled || err != nil {
			t.Errorf("site %s: settled %t, %v", site, settled, err)
		}
	}
	if state, err := config.LatestState(dir); err != nil || state.Node != old.Public().Node() {
		t.Errorf("%+v, %v", state, err)
	}
	if settled, err := Settle(t.TempDir(), "a"); settled || err != nil {
		t.Errorf("an empty folder: settled %t, %v", settled, err)
	}
}

// The journal of a site follows its key; another site's does not.
func TestJournalSucceeds(t *testing.T) {
	dir := t.TempDir()
	j, err := record.OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	err = errors.Join(j.Identify("a", [16]byte{1}, false), j.Succeed("a", [16]byte{2}), j.Succeed("b", [16]byte{3}))
	if err != nil {
		t.Fatal(err)
	}
	if err = j.Identify("a", [16]byte{2}, true); err != nil {
		t.Error(err)
	}
	if err = j.Identify("b", [16]byte{3}, true); !errors.Is(err, record.ErrForeignData) {
		t.Errorf("another site: %v", err)
	}
}
