package walfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Records are written past the kernel's cache where the file system can do that. Either
// way the file holds the same.
func TestWaysToTheDisk(t *testing.T) {
	records := []string{"one", strings.Repeat("x", block-2*headSize-8), "", strings.Repeat("y", 3*block), strings.Repeat("z", block), "last"}
	for name, way := range map[string]struct {
		size int64
		turn func(w *File)
	}{
		"direct":        {64 << 10, func(*File) {}},
		"not in blocks": {64<<10 + 8, func(*File) {}},
		"refused by a disk": {64 << 10, func(w *File) {
			w.pwritev2 = func(int, [][]byte, int64, int) (int, error) { return 0, unix.EINVAL }
		}},
		"refused by a filter": {64 << 10, func(w *File) {
			w.pwritev2 = func(int, [][]byte, int64, int) (int, error) { return 0, unix.EPERM }
		}},
		"not of this kernel": {64 << 10, func(w *File) {
			w.pwritev2 = func(int, [][]byte, int64, int) (int, error) { return 0, unix.ENOSYS }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.wal")
			w, _, err := Open(path, way.size, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for range 3 { // generations
				held := w.Held()
				way.turn(w)
				for i, r := range records {
					if err := w.Append([]byte(r)); err != nil {
						t.Fatalf("record %d: %v", i, err)
					}
					again, got, err := reopened(t, path, held)
					if want := strings.Join(records[:i+1], "|"); err != nil || got != want {
						t.Fatalf("behind record %d: %d bytes, want %d: %v", i, len(got), len(want), err)
					}
					if err := again.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if info, err := os.Stat(path); err != nil || info.Size() != way.size {
					t.Fatalf("%v: it has grown to %d", err, info.Size())
				}
				if err := w.Reset(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
