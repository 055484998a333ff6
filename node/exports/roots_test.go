package exports

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseRoots(t *testing.T) {
	roots, err := ParseRoots([]string{"alice=/data/alice", "*=/scratch", "@site=/srv", "alice=/more"})
	if err != nil || !slices.Equal(roots.Of("alice"), []string{"/data/alice", "/more", "/scratch"}) ||
		!slices.Equal(roots.Of(""), []string{"/srv", "/scratch"}) || !slices.Equal(roots.Of("bob"), []string{"/scratch"}) {
		t.Errorf("%v %v", roots, err)
	}
	for _, text := range []string{"/data", "alice", "Alice=/x", "alice=x", "alice=/x/", "alice=/x/../y", "alice=/", "=/x"} {
		if _, err := ParseRoots([]string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestFind(t *testing.T) {
	roots := Roots{"alice": {"/data", "/data/alice"}, "*": {"/scratch"}}
	for _, c := range []struct{ user, path, root, rel string }{
		{"alice", "/data/x/y", "/data", "x/y"},
		{"alice", "/data/alice/y/", "/data/alice", "y"},
		{"alice", "/data/alice2", "/data", "alice2"},
		{"alice", "/data", "/data", "."},
		{"bob", "/scratch//a", "/scratch", "a"},
	} {
		if root, rel, err := roots.Find(c.user, c.path); err != nil || root != c.root || rel != c.rel {
			t.Errorf("%s %s: %q %q %v", c.user, c.path, root, rel, err)
		}
	}
	for _, c := range []struct{ user, path string }{
		{"bob", "/data/x"},
		{"", "/data/x"},
		{"alice", "/database"},
		{"alice", "/data/../etc/passwd"},
		{"alice", "/data/./x"},
		{"alice", "data/x"},
		{"alice", ""},
		{"alice", "/data/\x00"},
		{"alice", "/data/\xff"},
		{"alice", "/data/" + strings.Repeat("x", maxPath)},
	} {
		if root, rel, err := roots.Find(c.user, c.path); !errors.Is(err, ErrRefused) {
			t.Errorf("%s %.40q: %q %q %v", c.user, c.path, root, rel, err)
		}
	}
}

// TestReadsStayBelow: no link leads out of a root, and what is no regular file is not waited for.
func TestReadsStayBelow(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	write(t, other, "secret", "s")
	write(t, root, "a/b", "content")
	for _, link := range [][2]string{{filepath.Join(other, "secret"), "out"}, {other, "away"}, {"a/b", "in"}, {"..", "up"}} {
		if err := os.Symlink(link[0], filepath.Join(root, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(root, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, rel := range []string{"out", "away/secret", "up/x", "fifo", "a", "none"} {
		if f, err := OpenFile(root, rel); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v %v", rel, f, err)
		}
	}
	f, err := OpenFile(root, "in")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "content" {
		t.Errorf("%q %v", text, err)
	}
	var seen []string
	err = Tree(root, ".", func(rel string, _ *os.File) error { seen = append(seen, rel); return nil })
	if err != nil || !slices.Equal(seen, []string{"a/b"}) {
		t.Errorf("%v %v", seen, err)
	}
}

func write(t *testing.T, dir, rel, content string) {
	t.Helper()
	at := filepath.Join(dir, rel)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}
