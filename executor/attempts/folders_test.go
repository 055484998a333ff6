package attempts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIdentity: a folder keeps its own; a torn one is made again, and two folders
// have two.
func TestIdentity(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	identity := func(dir string) string {
		t.Helper()
		id, err := Identity(dir)
		if err != nil || len(id) != identityLen || strings.Trim(id, lowerDigits) != "" {
			t.Fatalf("got %q, %v", id, err)
		}
		return id
	}
	id := identity(one)
	if again := identity(one); again != id || identity(other) == id {
		t.Errorf("%s and %s of one folder, %s of another", id, again, identity(other))
	}
	if err := os.WriteFile(filepath.Join(one, "id"), []byte(id[:3]), 0o600); err != nil {
		t.Fatal(err)
	}
	if next := identity(one); next == id {
		t.Errorf("a torn one is %s again", next)
	}
	if err := os.WriteFile(filepath.Join(other, "id"), []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if kept := identity(other); kept != "0123456789abcdef" {
		t.Errorf("one of an earlier version became %s", kept)
	}
}

// TestNote: a note is read as it was written last; a cut or too long one is torn, and a
// missing one is that.
func TestNote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "end")
	var got End
	if err := ReadNote(path, 1000, &got); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	for _, size := range []int64{1, 2} {
		if err := WriteNote(path, End{Out: [2]int64{size}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := ReadNote(path, 1000, &got); err != nil || got.Out[0] != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := ReadNote(path, 10, &got); !errors.Is(err, ErrTorn) {
		t.Errorf("too long: %v", err)
	}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if err := ReadNote(path, 1000, &got); !errors.Is(err, ErrTorn) {
		t.Errorf("cut: %v", err)
	}
}
