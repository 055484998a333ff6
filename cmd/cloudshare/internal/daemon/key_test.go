package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/record"
)

// identified starts on a folder as site-1, and returns its node.
func identified(t *testing.T, dir string, joined bool) ([16]byte, error) {
	t.Helper()
	j, err := record.OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	cfg := config.Config{Site: "site-1", DataDir: dir, Coordination: config.Raft}
	key, err := identify(t.Context(), cfg, j, joined, zerolog.Nop())
	if err != nil {
		return [16]byte{}, err
	}
	return key.Public().Node(), nil
}

// A site's node is that of its key, which the first start makes and every later one reads.
func TestNodeIsOfTheKey(t *testing.T) {
	dir := t.TempDir()
	first, err := identified(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	key, err := identity.Load(filepath.Join(dir, config.KeyFile))
	if err != nil || key.Public().Node() != first {
		t.Fatalf("node %x, key %v, %v", first, key, err)
	}
	if again, err := identified(t, dir, true); err != nil || again != first {
		t.Errorf("second start: %x, %v; want %x", again, err, first)
	}
}

// TestNextKeyBesideAnUnreadableLog: whether the next key is in force cannot be asked where the log does not say whom.
// The start goes on with the key of before: whatever opens the log next says what is wrong with it, or mends it.
func TestNextKeyBesideAnUnreadableLog(t *testing.T) {
	dir := t.TempDir()
	first, err := identified(t, dir, false)
	raft := filepath.Join(dir, config.RaftDir)
	next := filepath.Join(dir, config.NextKeyFile)
	if err = errors.Join(err, identity.Generate().Save(next), os.MkdirAll(raft, 0o700),
		os.WriteFile(filepath.Join(raft, "member.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if again, err := identified(t, dir, true); err != nil || again != first {
		t.Errorf("node %x, %v; want %x", again, err, first)
	}
}

// A crash between the key and the journal, or a founding that was refused, leaves nothing in the way.
func TestKeyBeforeTheJournal(t *testing.T) {
	dir := t.TempDir()
	key := identity.Generate()
	if err := key.Save(filepath.Join(dir, config.KeyFile)); err != nil {
		t.Fatal(err)
	}
	if node, err := identified(t, dir, false); err != nil || node != key.Public().Node() {
		t.Errorf("node %x, %v", node, err)
	}
}

func TestRefusedKeys(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		err    error
		says   string
	}{
		"missing":   {os.Remove, identity.ErrKeyFile, "is missing"},
		"exposed":   {func(path string) error { return os.Chmod(path, 0o644) }, identity.ErrExposed, "chmod 600"},
		"another's": {replaceKey, record.ErrForeignData, "put back the key"},
		"not a folder": {
			func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
			identity.ErrKeyFile, "no file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := identified(t, dir, false); err != nil {
				t.Fatal(err)
			}
			if err := c.change(filepath.Join(dir, config.KeyFile)); err != nil {
				t.Fatal(err)
			}
			_, err := identified(t, dir, true)
			if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: want %v, in one line with %q", err, c.err, c.says)
			}
		})
	}
}

func replaceKey(path string) error {
	return errors.Join(os.Remove(path), identity.Generate().Save(path))
}
