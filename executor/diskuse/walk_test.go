package diskuse

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

// TestWalk: bytes, files and depth are bounded; links are not followed, a file with two names counts once, and what is
// not there counts nothing.
func TestWalk(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	for name, size := range map[string]int{outside: 1 << 20, filepath.Join(dir, "one"): 64 << 10} {
		if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		os.Link(filepath.Join(dir, "one"), filepath.Join(dir, "two")), os.Symlink(filepath.Dir(outside), filepath.Join(dir, "link")),
		os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 10)), 0o700),
	)
	if err != nil {
		t.Fatal(err)
	}
	count := func(most Use, path string) (Use, string) {
		w := Walk{Most: most, Where: "here"}
		if err := w.Folder(path); err != nil && !errors.Is(err, ErrOver) {
			t.Fatal(err)
		}
		return w.Used, w.Why
	}
	all := Use{1 << 40, MaxFiles}
	used, why := count(all, dir)
	if used.Files != 13 || used.Bytes < 64<<10 || used.Bytes > 256<<10 || why != "" {
		t.Errorf("counted %+v, %q", used, why)
	}
	if used, why = count(all, filepath.Join(dir, "link")); used != (Use{}) || why != "" {
		t.Errorf("behind a link: %+v, %q", used, why)
	}
	if used, why = count(all, filepath.Join(dir, "absent")); used != (Use{}) || why != "" {
		t.Errorf("of nothing: %+v, %q", used, why)
	}
	for want, most := range map[string]Use{
		"over its scratch: more than 32768 bytes in here": {32 << 10, MaxFiles}, "over its scratch: more than 12 files in here": {1 << 40, 12},
	} {
		if _, why = count(most, dir); why != want {
			t.Errorf("got %q, want %q", why, want)
		}
	}
	if err = os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", MaxDepth+2)), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, why = count(all, dir); !strings.Contains(why, "folders nested more than 256 deep") {
		t.Errorf("deep folders: %q", why)
	}
}

// TestPassEndsAWalk: a walk ends at once when it is told to.
func TestPassEndsAWalk(t *testing.T) {
	stop := errors.New("stop")
	w := Walk{Most: Use{1, 1}, Pass: func() error { return stop }}
	if err := w.Add(2); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

// TestUnbounded counts all until nobody wants to know any more, and passes over what is too deep.
func TestUnbounded(t *testing.T) {
	dir := t.TempDir()
	const size = 1 << 20
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", MaxDepth+2)), 0o700),
		os.WriteFile(filepath.Join(dir, "one"), make([]byte, size), 0o600),
		os.WriteFile(filepath.Join(dir, "d", "two"), make([]byte, size), 0o600),
		os.WriteFile(filepath.Join(dir, "d", "three"), make([]byte, size), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	w := Unbounded(t.Context())
	if err = w.Folder(dir); err != nil || w.Used.Files != MaxDepth+4 || w.Used.Bytes < 3*size {
		t.Errorf("%v, %+v, want three files and %d folders", err, w.Used, MaxDepth+1)
	}
	shallow := filepath.Join(t.TempDir(), "two")
	if err = os.WriteFile(shallow, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	w = Unbounded(t.Context())
	if err = w.Folder(filepath.Dir(shallow)); err != nil || w.Used.Bytes < size || w.Used.Bytes > 2*size {
		t.Errorf("%v, %+v, want one of %d bytes", err, w.Used, size)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w = Unbounded(ended)
	if err = w.Folder(filepath.Dir(shallow)); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody wants to know: %v", err)
	}
}

// TestFits: files that are over the bound alone are refused: for good by what the site says, else until the disk has
// room for four times as much when they are there.
func TestFits(t *testing.T) {
	dir := t.TempDir()
	free, err := Free(dir)
	if err != nil {
		t.Fatal(err)
	}
	sparse := filepath.Join(dir, "sparse")
	if err = errors.Join(os.WriteFile(sparse, nil, 0o600), os.Truncate(sparse, free.Bytes/4)); err != nil {
		t.Fatal(err)
	}
	small := executor.File{Path: "in", Content: make([]byte, 8)}
	for _, c := range []struct {
		most int64
		file executor.File
		want error
	}{
		{8, small, nil},
		{7, small, executor.ErrUnfit},
		{0, small, nil},
		{0, executor.File{Source: sparse}, executor.ErrBusy},
		{free.Bytes, executor.File{Source: sparse}, nil},
		{8, executor.File{Source: filepath.Join(dir, "absent")}, executor.ErrBusy},
	} {
		if err := Fits(dir, c.most, []executor.File{c.file}); !errors.Is(err, c.want) {
			t.Errorf("%d bytes for %q: %v, want %v", c.most, c.file.Source, err, c.want)
		}
	}
}

// TestBound: what a site says, else a quarter of what is free.
func TestBound(t *testing.T) {
	for free, want := range map[Use]Use{
		{400, 40}: {100, 10}, {400, 0}: {100, MaxFiles}, {400, 1 << 30}: {100, MaxFiles},
	} {
		if got := free.Bound(0); got != want {
			t.Errorf("of %+v: %+v, want %+v", free, got, want)
		}
	}
	if got := (Use{400, 40}).Bound(7); got != (Use{7, 10}) {
		t.Errorf("as the site says: %+v", got)
	}
}
