package exports

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
)

// results are files by path.
type results map[string]string

var errBroken = errors.New("broken")

func (r results) Each(f func(e files.Entry) error) error {
	var paths []string
	for p := range r {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		if err := f(files.Entry{Path: p, Size: int64(len(r[p])), Executable: strings.HasSuffix(p, ".sh")}); err != nil {
			return err
		}
	}
	return nil
}

func (r results) Open(e files.Entry) (io.ReadCloser, error) {
	if r[e.Path] == "broken" {
		return io.NopCloser(io.MultiReader(strings.NewReader("half"), failing{})), nil
	}
	return io.NopCloser(strings.NewReader(r[e.Path])), nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }

func TestWrite(t *testing.T) {
	root := t.TempDir()
	write(t, root, "out/a.txt", "old")
	list := []node.Export{
		{From: "x/0/file", Root: root, To: "out/a.txt", Tag: 0},
		{From: "x/1", Many: true, Root: root, To: "tree", Tag: 1},
		{From: "x/2", Many: true, Root: root, To: ".", Tag: 2},
	}
	from := results{"x/0/file": "new", "x/1/b/c.sh": "c", "x/10/d": "no", "other": "no"}
	for range 2 { // it may be repeated
		done, err := Write(t.Context(), list, from)
		want := []node.Exported{{Tag: 0, Size: 3}, {Tag: 1, Path: "b/c.sh", Size: 1}}
		if err != nil || !slices.Equal(done, want) {
			t.Fatalf("%v %v", done, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "out/a.txt")); err != nil || string(text) != "new" {
		t.Errorf("%q %v", text, err)
	}
	st, err := os.Stat(filepath.Join(root, "tree/b/c.sh"))
	if err != nil || st.Mode()&0o100 == 0 {
		t.Errorf("%v %v", st, err)
	}
	if _, err := Write(t.Context(), list, results{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "x/0/file") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestWriteFollowsNoLink: what stands at the place is replaced, and nothing is written outside of a root.
func TestWriteFollowsNoLink(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	write(t, other, "kept", "kept")
	for name, to := range map[string]string{"a": filepath.Join(other, "kept"), "dir": other} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Write(t.Context(), []node.Export{{From: "f", Root: root, To: "a"}}, results{"f": "new"}); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(filepath.Join(root, "a")); err != nil || !st.Mode().IsRegular() {
		t.Errorf("%v %v", st, err)
	}
	_, err := Write(t.Context(), []node.Export{{From: "f", Root: root, To: "dir/b"}}, results{"f": "new"})
	if !errors.Is(err, ErrRefused) || errors.Is(err, ErrAgain) {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(filepath.Join(other, "kept")); err != nil || string(text) != "kept" {
		t.Errorf("%q %v", text, err)
	}
	if list, err := os.ReadDir(other); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

// TestWriteLeavesNoHalf: of a file that breaks off nothing is left, and what was there stays.
func TestWriteLeavesNoHalf(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "old")
	if _, err := Write(t.Context(), []node.Export{{From: "f", Root: root, To: "a"}}, results{"f": "broken"}); err == nil {
		t.Error("no error")
	}
	list, err := os.ReadDir(root)
	text, _ := os.ReadFile(filepath.Join(root, "a"))
	if err != nil || len(list) != 1 || string(text) != "old" {
		t.Errorf("%v %v %q", list, err, text)
	}
}
