package watchdog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBothStreamsAreMarked: the end of one stream leaves the other's mark alone.
func TestBothStreamsAreMarked(t *testing.T) {
	const limit = 10
	dir := t.TempDir()
	var o Output
	for i := range o.Files {
		f, err := os.OpenFile(filepath.Join(dir, string(rune('a'+i))), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err = f.WriteString(strings.Repeat("x", 3*limit)); err != nil {
			t.Fatal(err)
		}
		o.Files[i] = f
	}
	o.begin()
	o.Finish(0, limit)
	o.Finish(1, limit)
	for _, f := range o.Files {
		b, err := os.ReadFile(f.Name())
		if want := strings.Repeat("x", limit) + Marker(limit); err != nil || string(b) != want {
			t.Errorf("kept %q, %v; want %q", b, err, want)
		}
	}
}
