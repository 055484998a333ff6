package staging

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

func file(path, content string) executor.File {
	return executor.File{Path: path, Content: []byte(content)}
}

// TestPutFollowsNoLinks: whatever stands in the folder already, nothing is written anywhere else.
func TestPutFollowsNoLinks(t *testing.T) {
	for name, prepare := range map[string]func(dir, outside string) error{
		"the file is a link": func(dir, outside string) error {
			return os.Symlink(filepath.Join(outside, "x"), filepath.Join(dir, "a"))
		},
		"a folder is a link": func(dir, outside string) error { return os.Symlink(outside, filepath.Join(dir, "sub")) },
		"a folder is a link in the tree": func(dir, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o700), os.Symlink("d", filepath.Join(dir, "sub")))
		},
		"a folder is a file": func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "sub"), nil, 0o600) },
		"the file is there":  func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o600) },
	} {
		dir, outside := t.TempDir(), t.TempDir()
		if err := prepare(dir, outside); err != nil {
			t.Fatal(err)
		}
		if err := Put(t.Context(), dir, []executor.File{file("sub/x", "new"), file("a", "new")}, Private()); err == nil {
			t.Errorf("%s: put", name)
		}
		left, err := os.ReadDir(outside)
		if err != nil || len(left) > 0 {
			t.Errorf("%s: outside there is %v, %v", name, left, err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "a")); err == nil && string(b) == "new" && name != "a folder is a file" {
			if strings.HasPrefix(name, "the file") {
				t.Errorf("%s: written over", name)
			}
		}
	}
}

// TestPutCopies: byte by byte, with the rights that programs and files have, and never the source itself.
func TestPutCopies(t *testing.T) {
	dir, source := t.TempDir(), filepath.Join(t.TempDir(), "blob")
	content := strings.Repeat("0123456789abcdef", 1<<20) // more than one piece
	if err := os.WriteFile(source, []byte(content), 0o400); err != nil {
		t.Fatal(err)
	}
	files := []executor.File{{Path: "a/b/big", Source: source}, {Path: "a/run", Source: source, Executable: true}, file("small", "")}
	if size, err := Size(files); err != nil || size != 2*int64(len(content)) {
		t.Errorf("%d bytes, %v", size, err)
	}
	if err := Put(t.Context(), dir, files, Private()); err != nil {
		t.Fatal(err)
	}
	blob, err := os.Stat(source)
	if err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{"a/b/big": 0o644, "a/run": 0o755, "small": 0o644} {
		st, err := os.Stat(filepath.Join(dir, path))
		if err != nil || st.Mode() != mode || os.SameFile(st, blob) {
			t.Errorf("%s: %v, %v", path, st, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a/b/big")); err != nil || string(b) != content {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestPutEndsWhenNobodyWantsIt: between two pieces, with the reason.
func TestPutEndsWhenNobodyWantsIt(t *testing.T) {
	source := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(source, []byte("x"), 0o400); err != nil {
		t.Fatal(err)
	}
	why := errors.New("nobody wants it")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := Put(ctx, t.TempDir(), []executor.File{{Path: "a", Source: source}}, Private()); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// TestPutTakesFilesOnly: a source that is a pipe hangs nobody.
func TestPutTakesFilesOnly(t *testing.T) {
	for _, source := range []string{"/dev/zero", t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if err := Put(t.Context(), t.TempDir(), []executor.File{{Path: "a", Source: source}}, Private()); err == nil {
			t.Errorf("%s is taken", source)
		}
	}
}
