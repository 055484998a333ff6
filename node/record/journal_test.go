package record

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// A site that was expelled right after it had registered, and died while it
// registered again, could not prove that its data were its latest.
func TestNotedBootKeepsNewerOnes(t *testing.T) {
	j, err := OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	boots := [][16]byte{{1}, {2}, {3}, {4}}
	for _, boot := range boots[:3] {
		if _, err := j.Boot(boot); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Commit([]Write{RegisteredAs(boots[1])}); err != nil {
		t.Fatal(err)
	}
	known, err := j.Boot(boots[3])
	if want := [][16]byte{{4}, {3}, {2}}; err != nil || !slices.Equal(known, want) {
		t.Errorf("knows %v, %v; want %v", known, err, want)
	}
}

func TestDataDirectoryBelongsToOneSite(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	one, two := [16]byte{1}, [16]byte{2}
	for _, c := range []struct {
		site   string
		node   [16]byte
		joined bool
		err    error
	}{
		{"site-1", one, false, nil},
		{"site-1", two, false, nil}, // nothing was promised yet
		{"site-0", two, false, nil},
		{"site-1", one, false, nil},
		{"site-1", one, true, nil},
		{"site-1", two, true, ErrForeignData}, // another's key was put there
		{"site-2", one, true, ErrForeignData},
	} {
		if err := j.Identify(c.site, c.node, c.joined); !errors.Is(err, c.err) {
			t.Errorf("Identify(%s, %x, %v) = %v, want %v", c.site, c.node[:1], c.joined, err, c.err)
		}
	}
	if _, err := OpenJournal(dir); !errors.Is(err, ErrDataInUse) {
		t.Errorf("second broker on %s: %v", filepath.Base(dir), err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// However often it starts without ever registering, its own data are not old.
func TestManyStartsWithoutAQuorum(t *testing.T) {
	j, err := OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	first := [16]byte{1}
	if err := j.Commit([]Write{RegisteredAs(first)}); err != nil {
		t.Fatal(err)
	}
	for n := range 200 {
		known, err := j.Boot([16]byte{2, byte(n)})
		if err != nil || len(known) > command.MaxKnown || !slices.Contains(known, first) {
			t.Fatalf("start %d: %d known, %v", n, len(known), err)
		}
	}
}
