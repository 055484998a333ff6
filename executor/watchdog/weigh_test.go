package watchdog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWeighFolders: links are not followed, each name of a file counts a part, and what is missing nothing.
func TestWeighFolders(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	const size = 1 << 20
	for _, name := range []string{dir + "/a", dir + "/sub/b", outside + "/c"} {
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if err = errors.Join(err, os.WriteFile(name, make([]byte, size), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "again")),
		os.Symlink(outside, filepath.Join(dir, "out")), os.Symlink("sub", filepath.Join(dir, "in")))
	if err != nil {
		t.Fatal(err)
	}
	if got := WeighFolders(t.Context(), dir, dir+"/none", dir+"/out"); got < 2*size || got > 2*size+size/2 {
		t.Errorf("%d bytes, want those of two files of %d", got, size)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := WeighFolders(ended, dir); got > size {
		t.Errorf("%d bytes, and nobody wants to know", got)
	}
	deep := filepath.Join(outside, strings.Repeat("d/", MaxDepth+2))
	if err = os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(outside)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err = Weigh(f, func(int64) error { return nil }); !errors.Is(err, ErrDeep) {
		t.Errorf("folders in folders: %v", err)
	}
}
