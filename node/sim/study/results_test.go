package study

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
)

// A device or a pipe in the place of results would be read without end.
func TestResultsAreInAFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, os.DevNull} {
		if _, err := OpenResults(path, DefaultStudy()); !errors.Is(err, sim.ErrNoFile) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
