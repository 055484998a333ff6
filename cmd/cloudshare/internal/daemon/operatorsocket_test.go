package daemon

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// What a broker that was killed left is replaced, and nothing is left of it in the end.
func TestOperatorsSocketFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, apiSocket)
	old, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	old.(*net.UnixListener).SetUnlinkOnClose(false) // as a killed process leaves it
	if err = old.Close(); err != nil {
		t.Fatal(err)
	}
	l := openOperatorSocket(dir, zerolog.Nop())
	if l == nil {
		t.Fatal("no socket")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err = l.Close(); err != nil {
		t.Error(err)
	}
	if _, err = os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// A path that the system cannot take is told, and the broker starts.
func TestNoOperatorsSocket(t *testing.T) {
	var log strings.Builder
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", maxSocketPath))
	if l := openOperatorSocket(dir, zerolog.New(&log)); l != nil {
		t.Errorf("%v", l.Addr())
	}
	for _, want := range []string{"107 bytes", "shorter data_dir", "tokens.json", `"level":"warn"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log.String())
		}
	}
}
