package exports

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/node/files"
)

// TestTreeIsInTheOrderOfManifests: names and what they begin, folders and files.
func TestTreeIsInTheOrderOfManifests(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/x", "a.txt", "a-b/c", "ab", "a/y/z", "b", "a/x.y", "Z"} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := Tree(Root{Name: dir, Folder: dir}, ".", func(rel string, _ *os.File) error {
		got = append(got, rel)
		return nil
	})
	if err != nil || len(got) != 8 || !slices.IsSortedFunc(got, files.ComparePaths) {
		t.Errorf("%v %v", got, err)
	}
}

// TestTreeIsBounded: by folders in one another and by names, of which no more are read.
func TestTreeIsBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", maxNested+1)), 0o755); err != nil {
		t.Fatal(err)
	}
	root, none := Root{Name: dir, Folder: dir}, func(string, *os.File) error { return nil }
	if err := Tree(root, ".", none); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "in one another") {
		t.Error(err)
	}
	many := t.TempDir()
	for i := range 10 {
		if err := os.Mkdir(filepath.Join(many, fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sub, err := openFolder(Root{Name: many, Folder: many}, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	w := walk{dir: sub, f: none, visited: maxVisited - 9}
	if err := w.folder(".", 0); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "archive") {
		t.Error(err)
	}
}

// TestCheckFolder: a folder, and what is none.
func TestCheckFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root := Root{Name: dir, Folder: dir}
	if err := CheckFolder(root, "."); err != nil {
		t.Error(err)
	}
	for _, rel := range []string{"f", "none", "../.."} {
		if err := CheckFolder(root, rel); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", rel, err)
		}
	}
}

// TestFifoForAFolder: one that takes a folder's place after its name was read is not waited for. An import hung there,
// and with it the broker's stop.
func TestFifoForAFolder(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "was-a-folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	sub, err := openFolder(Root{Name: dir, Folder: dir}, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	w := walk{dir: sub, f: func(string, *os.File) error { return nil }}
	if err := w.folder("was-a-folder", 0); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
}

// TestAFileIsNoFolder: who names a file as a folder is told so by its own name, not by a descriptor of the broker's.
func TestAFileIsNoFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := CheckFolder(Root{Name: dir, Folder: dir}, "in.txt")
	if want := `"in.txt" is no directory: give its type as FILE`; !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
