package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/boltfile"
)

// A damaged journal is an error that names the file and what to do, not a panic
// of bolt.
func TestADamagedJournalIsAnError(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err = j.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "journal.db")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[2*os.Getpagesize():]) // the heads are whole
	if err = os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = OpenJournal(dir)
	if !errors.Is(err, boltfile.ErrDamaged) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%v, want one line with ErrDamaged and the file", err)
	}
}
