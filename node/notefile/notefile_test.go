package notefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

type note struct{ N int }

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note.json")
	var got note
	if found, err := Read(path, 100, &got); found || err != nil {
		t.Fatalf("no file: found %v, %v", found, err)
	}
	for n := range 3 {
		if err := Write(path, note{n}); err != nil {
			t.Fatal(err)
		}
		if found, err := Read(path, 100, &got); !found || err != nil || got.N != n {
			t.Fatalf("found %v, %+v, %v; want N %d", found, got, err, n)
		}
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBadFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note.json")
	for _, text := range []string{"", "{", `{"N":"x"}`, `{"N":1} more`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := Read(path, 100, &note{}); !found || err == nil {
			t.Errorf("%q: found %v, error %v", text, found, err)
		}
	}
	if _, err := Read(path, 3, &note{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large file: %v", err)
	}
	if err := Write(filepath.Join(path, "below a file"), note{}); err == nil {
		t.Error("wrote below a file")
	}
}
