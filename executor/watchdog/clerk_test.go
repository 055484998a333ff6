package watchdog

import (
	"os"
	"path/filepath"
	"testing"
)

// TestClerkOnAStalledDisk: whoever watches a clock is never kept waiting, and what was
// asked for is done once the disk is back.
func TestClerkOnAStalledDisk(t *testing.T) {
	var o Output
	dir := t.TempDir()
	for i, name := range []string{"out", "err"} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		o.Files[i] = f
	}
	if _, err := o.Files[0].WriteString("too much"); err != nil {
		t.Fatal(err)
	}
	o.begin()
	c := NewClerk()
	defer c.Close()
	stalled := make(chan struct{})
	c.Do(func() { <-stalled })
	for range 100 { // each would block if it waited for the disk, or for room in a queue
		c.look(&o, 3, minLook)
	}
	if st, err := o.Files[0].Stat(); err != nil || st.Size() != 8 {
		t.Fatalf("looked at before the disk is back: %v", err)
	}
	close(stalled)
	c.Flush()
	if st, err := o.Files[0].Stat(); err != nil || st.Size() != 3 {
		t.Errorf("not cut: %v", err)
	}
	if pace := c.look(&o, 3, minLook); pace != minLook {
		t.Errorf("the next attempt begins with a pace of %d", pace)
	}
	c.Flush()
}
