package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// fullDisk takes so many bytes more.
type fullDisk struct {
	output
	left int
}

func (d *fullDisk) Write(b []byte) (int, error) {
	n, err := d.output.Write(b[:min(len(b), d.left)])
	if d.left -= n; err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

// openPlain opens files without a goroutine that writes them.
func openPlain(t *testing.T, o Options) *files {
	t.Helper()
	f, err := openFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.close() })
	return f
}

func line(user string) []byte { return append((&Entry{User: user}).appendTo(nil), '\n') }

// What a full disk has cut costs no entry that comes once there is room again: the next one was glued to it, and lost.
func TestALineThatAFullDiskCutStaysAlone(t *testing.T) {
	for cut := range len(line("bob")) - 1 {
		dir := t.TempDir()
		f := openPlain(t, Options{Dir: dir})
		if err := f.append(line("alice")); err != nil {
			t.Fatal(err)
		}
		disk := &fullDisk{f.out, cut}
		f.out = disk
		for range 2 {
			if err := f.append(line("bob")); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("after %d bytes: %v", cut, err)
			}
		}
		disk.left = 1 << 20
		if err := f.append(line("carol")); err != nil {
			t.Fatal(err)
		}
		if got := read(t, open(t, Options{Dir: dir}), Query{Limit: 10}); got != "carol alice" {
			t.Errorf("cut after %d bytes: read %s", cut, got)
		}
	}
}

// A file that could not be begun costs no entry that comes once it can be: the first one was refused, since the file
// before was closed already.
func TestTheNextFileIsBegunLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	f := openPlain(t, Options{Dir: dir, FileBytes: 1})
	if err := f.append(line("alice")); err != nil {
		t.Fatal(err)
	}
	away := dir + ".away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.append(line("bob")); !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	if err := f.append(line("carol")); err != nil {
		t.Error(err)
	}
	if got := read(t, open(t, Options{Dir: dir}), Query{Limit: 10}); got != "carol alice" {
		t.Errorf("read %s", got)
	}
}

// A file that could not be begun costs no entry that fits into the one before: that was closed, and what came next was
// written to it and lost.
func TestTheFileBeforeStaysOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	f := openPlain(t, Options{Dir: dir, FileBytes: int64(3 * len(line("alice")))})
	if err := f.append(line("alice")); err != nil {
		t.Fatal(err)
	}
	away := dir + ".away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	if err := f.append(bytes.Repeat(line("frank"), 3)); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := errors.Join(f.append(line("bob")), f.sync()); err != nil {
		t.Error(err)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	full := f.out
	if err := f.append(slices.Concat(line("carol"), line("dave"))); err != nil {
		t.Error(err)
	}
	if err := full.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file before was left open: %v", err)
	}
	if got := read(t, open(t, Options{Dir: dir}), Query{Limit: 10}); got != "dave carol bob alice" {
		t.Errorf("read %s", got)
	}
}
