//go:build attacks

package attacks

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// founder is a stopped broker that has founded a federation of its own, and what starts it again.
func founder(t *testing.T) (data string, again []string) {
	t.Helper()
	b := solo.New(t, "alone", "--cores", "1", "--bootstrap")
	b.End(syscall.SIGTERM)
	return b.Dir, []string{"--site", "alone", "--data-dir", b.Dir, "--http", b.URL.Host, "--peer", b.Peer}
}

// TestExposedKey: a broker does not start with a key that others can read, or replace.
func TestExposedKey(t *testing.T) {
	data, again := founder(t)
	key := filepath.Join(data, "key")
	for _, mode := range []os.FileMode{0o644, 0o640, 0o660, 0o602} {
		must(t, os.Chmod(key, mode))
		out := brokerEnds(t, again...)
		if strings.Count(out, "\n") != 1 || !strings.Contains(out, "chmod 600") || !strings.Contains(out, key) {
			t.Errorf("mode %04o:\n%s", mode, out)
		}
	}
	must(t, os.Rename(key, key+".real"))
	must(t, os.Symlink(key+".real", key))
	if out := brokerEnds(t, again...); strings.Count(out, "\n") != 1 || !strings.Contains(out, "is a link") {
		t.Errorf("a link:\n%s", out)
	}
}

// TestOldDataFolder: data of a version without keys, and data whose key is lost, are refused in one line that says what
// to do; nothing is made in their place.
func TestOldDataFolder(t *testing.T) {
	data, again := founder(t)
	key := filepath.Join(data, "key")
	must(t, os.Remove(key))
	for _, args := range [][]string{again, append(again, "--bootstrap", "--if-empty")} {
		out := brokerEnds(t, args...)
		if strings.Count(out, "\n") != 1 || !strings.Contains(out, "restore it from a backup") || !strings.Contains(out, "an older version") {
			t.Errorf("without a key:\n%s", out)
		}
	}
	if _, err := os.Lstat(key); err == nil {
		t.Error("another key was made")
	}
}
