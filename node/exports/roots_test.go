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

func named(list ...string) (roots []Root) {
	for _, name := range list {
		roots = append(roots, Root{Name: name, Folder: name})
	}
	return roots
}

// names returns those of roots, with :ro.
func names(list []Root) (names []string) {
	for _, r := range list {
		names = append(names, r.Name+map[bool]string{true: readOnly}[r.ReadOnly])
	}
	return names
}

func TestParseRoots(t *testing.T) {
	roots, err := ParseRoots([]string{"alice=/data/alice", "*=/scratch", "@site=/srv", "alice=/more:ro"})
	if err != nil || !slices.Equal(names(roots.Of("alice")), []string{"/data/alice", "/more:ro", "/scratch:ro"}) ||
		!slices.Equal(names(roots.Of("")), []string{"/srv", "/scratch:ro"}) ||
		!slices.Equal(names(roots.Of("bob")), []string{"/scratch:ro"}) {
		t.Errorf("%v %v", roots, err)
	}
	for _, text := range []string{"/data", "alice", "Alice=/x", "alice=x", "alice=/x/", "alice=/x/../y", "alice=/", "=/x"} {
		if _, err := ParseRoots([]string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestFind(t *testing.T) {
	roots := Roots{"alice": named("/data", "/data/alice"), "*": named("/scratch")}
	for _, c := range []struct{ user, path, root, rel string }{
		{"alice", "/data/x/y", "/data", "x/y"},
		{"alice", "/data/alice/y/", "/data/alice", "y"},
		{"alice", "/data/alice2", "/data", "alice2"},
		{"alice", "/data", "/data", "."},
		{"bob", "/scratch//a", "/scratch", "a"},
	} {
		if root, rel, err := roots.Find(c.user, c.path); err != nil || root.Name != c.root || rel != c.rel {
			t.Errorf("%s %s: %q %q %v", c.user, c.path, root.Name, rel, err)
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
			t.Errorf("%s %.40q: %q %q %v", c.user, c.path, root.Name, rel, err)
		}
	}
}

// TestReadsStayBelow: no link leads out of a root, and what is no regular file is not waited for.
func TestReadsStayBelow(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	at := Root{Name: root, Folder: root}
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
		if f, err := OpenFile(at, rel); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v %v", rel, f, err)
		}
	}
	f, err := OpenFile(at, "in")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "content" {
		t.Errorf("%q %v", text, err)
	}
	var seen []string
	err = Tree(at, ".", func(rel string, _ *os.File) error { seen = append(seen, rel); return nil })
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

// TestRootIsNoLink: a link to a root is followed when the broker starts, and none that takes its place later.
func TestRootIsNoLink(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "real/in/a", "a")
	write(t, dir, "other/in/a", "secret")
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real/in", link); err != nil {
		t.Fatal(err)
	}
	roots, err := ParseRoots([]string{"alice=" + link})
	if err != nil || roots["alice"][0] != (Root{Name: link, Folder: filepath.Join(dir, "real/in")}) {
		t.Fatalf("%+v %v", roots, err)
	}
	f, err := OpenFile(roots["alice"][0], "a")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	err = errors.Join(os.Rename(filepath.Join(dir, "real"), filepath.Join(dir, "away")),
		os.Symlink("other", filepath.Join(dir, "real")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(roots["alice"][0], "a"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "a link has taken") {
		t.Errorf("%v", err)
	}
	if _, err := roots.Writable("alice", link); !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
}

// TestRootIsApart: above, at and below what is the broker's own, by links too.
func TestRootIsApart(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "srv/broker/key", "k")
	if err := os.Symlink("srv", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	own := []string{filepath.Join(dir, "srv/broker")}
	for name, apart := range map[string]bool{
		"srv": false, "srv/broker": false, "srv/broker/new": false, "link": false, "link/broker/x": false,
		"srv/brokers": true, "srv/alice": true, "link/alice": true,
	} {
		roots, err := ParseRoots([]string{"alice=" + filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		if err := roots.Apart(own); (err == nil) != apart {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWritable: by who may write there now.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	roots := Roots{"alice": named(dir), "bob": {{Name: dir, Folder: dir, ReadOnly: true}}}
	r, err := roots.Writable("alice", dir)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	for _, user := range []string{"bob", "carol", ""} {
		if _, err := roots.Writable(user, dir); !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v", user, err)
		}
	}
}
