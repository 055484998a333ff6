package exports

import (
	"context"
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
		done, err := Write(t.Context(), list, from, os.OpenRoot, nil)
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
	if _, err = Write(t.Context(), list, results{}, os.OpenRoot, nil); !errors.Is(err, ErrRefused) ||
		!strings.Contains(err.Error(), "x/0/file") {
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
	list := []node.Export{{From: "f", Root: root, To: "a"}}
	if _, err := Write(t.Context(), list, results{"f": "new"}, os.OpenRoot, nil); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(filepath.Join(root, "a")); err != nil || !st.Mode().IsRegular() {
		t.Errorf("%v %v", st, err)
	}
	list[0].To = "dir/b"
	_, err := Write(t.Context(), list, results{"f": "new"}, os.OpenRoot, nil)
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
	to := []node.Export{{From: "f", Root: root, To: "a"}}
	if _, err := Write(t.Context(), to, results{"f": "broken"}, os.OpenRoot, nil); err == nil {
		t.Error("no error")
	}
	list, err := os.ReadDir(root)
	text, _ := os.ReadFile(filepath.Join(root, "a"))
	if err != nil || len(list) != 1 || string(text) != "old" {
		t.Errorf("%v %v %q", list, err, text)
	}
}

// TestOnlyWhatMatchesIsWritten: whoever ran the task has named its files.
func TestOnlyWhatMatchesIsWritten(t *testing.T) {
	root := t.TempDir()
	list := []node.Export{
		{From: "x/0", Many: true, Match: "*/[^a]*.txt", Root: root, To: "files"},
		{From: "x/1", Many: true, Match: "d*", Tree: true, Root: root, To: "trees"},
		{From: "x/2", Many: true, Match: ".c*", Root: root, To: "."},
	}
	from := results{
		"x/0/p/b.txt": "", "x/0/p/a.txt": "", "x/0/b.txt": "", "x/0/p/q/b.txt": "", "x/0/.ssh/b.txt": "",
		"x/1/d1/e/.f": "", "x/1/d": "", "x/1/e/d": "", "x/2/.c1": "", "x/2/.d": "",
	}
	done, err := Write(t.Context(), list, from, os.OpenRoot, nil)
	var got []string
	for _, f := range done {
		got = append(got, f.Path)
	}
	if want := []string{"p/b.txt", "d", "d1/e/.f", ".c1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v", got, err)
	}
}

// TestNoSettingsAreWritten: of a folder with a file whose name begins with a dot nothing is.
func TestNoSettingsAreWritten(t *testing.T) {
	for _, name := range []string{".bashrc", ".ssh/authorized_keys"} {
		root := t.TempDir()
		list := []node.Export{{From: "x", Many: true, Tree: true, Root: root, To: "."}}
		_, err := Write(t.Context(), list, results{"x/" + name: "", "x/a": ""}, os.OpenRoot, nil)
		if left, dirErr := os.ReadDir(root); dirErr != nil || len(left) > 0 || !errors.Is(err, ErrRefused) ||
			!strings.Contains(err.Error(), filepath.Join(root, name)) {
			t.Errorf("%v %v %v", left, dirErr, err)
		}
	}
}

// TestWriteGoesOn where an earlier try has ended.
func TestWriteGoesOn(t *testing.T) {
	root := t.TempDir()
	list := []node.Export{{From: "x", Many: true, Root: root, To: "."}}
	done, err := Write(t.Context(), list, results{"x/a": "a", "x/b": "broken", "x/c": "c"}, os.OpenRoot, nil)
	if err == nil || len(done) != 1 {
		t.Fatalf("%v %v", done, err)
	}
	write(t, root, "a", "changed since")
	done, err = Write(t.Context(), list, results{"x/a": "a", "x/b": "b", "x/c": "c"}, os.OpenRoot, done)
	if text, _ := os.ReadFile(filepath.Join(root, "a")); err != nil || len(done) != 3 || string(text) != "changed since" {
		t.Errorf("%v %v %q", done, err, text)
	}
}

// TestCopyEndsWithItsContext: a broker that stops waits for no large file.
func TestCopyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the broker stops")
	in := &ending{ctx, io.MultiReader(strings.NewReader("half"), strings.NewReader("rest"))}
	if n, err := in.Read(make([]byte, 4)); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	cancel(cause)
	if _, err := io.ReadAll(in); !errors.Is(err, cause) {
		t.Error(err)
	}
}
