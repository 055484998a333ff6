package replay_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/history/replay"
)

// after has a test change the newest segment's bytes.
func (f *federation) after(change func([]byte) []byte) func() {
	return func() {
		all := f.files()
		path := all[len(all)-1]
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, change(b), 0o600)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

// A loss of power that leaves a segment without contents, or one that ends within its first lines, costs that one only.
func TestSegmentWithoutAHeaderIsPassedOver(t *testing.T) {
	f := played(t)
	for _, b := range []string{"", "cloudsh", "cloudshare history 1\n{\"si", "cloudshare hi\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if err := os.WriteFile(filepath.Join(f.dir, "00000099.history"), []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
		r := f.verify(f.dir, replay.Options{})
		if r.Difference != nil || r.End.Entry != f.replica.Index() || len(r.Notes) != 1 {
			t.Errorf("%q: %v, end %d, notes %v", b, r.Difference, r.End.Entry, r.Notes)
		}
	}
}

// A tail of zeros, as a loss of power leaves it, is cut off at the next start.
func TestTailOfZerosIsCutOff(t *testing.T) {
	f := newFederation(t, 64<<20)
	f.job("site-2")
	f.idle(100)
	f.restart(f.after(func(b []byte) []byte { return append(b, make([]byte, 512)...) }), false)
	f.idle(100)
	f.close()
	r := f.verify(f.dir, replay.Options{})
	if r.Difference != nil || len(r.Gaps) > 0 || r.End.Entry != f.replica.Index() {
		t.Errorf("%v, gaps %v, end %d of %d", r.Difference, r.Gaps, r.End.Entry, f.replica.Index())
	}
}

// A segment that a disk has damaged is a gap in what is exported.
func TestDamagedSegmentIsExportedAsAGap(t *testing.T) {
	const bound = 1 << 20
	f := newFederation(t, bound)
	for range 150 {
		f.orderJunk()
	}
	f.idle(90)
	f.close()
	all := f.files()
	if len(all) < 3 {
		t.Fatalf("%d segments", len(all))
	}
	b, err := os.ReadFile(all[1])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err = os.WriteFile(all[1], b, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	x := history.Export{}
	if err = x.Write(f.source(f.dir), &out); err != nil || len(x.Notes) != 2 {
		t.Fatalf("%v, notes %v", err, x.Notes)
	}
	r := f.verify(writeFile(t, out.Bytes()), replay.Options{Keys: realKeys()})
	if r.Difference != nil || len(r.Gaps) != 1 || len(r.Gaps[0].SignedBy) != 3 {
		t.Errorf("%v, gaps %+v", r.Difference, r.Gaps)
	}
}

// A broker whose newest segment cannot be gone on with plays its log again into another one, which begins earlier: what
// is there twice is compared, and passed over, also in what is exported.
func TestWhatIsKeptTwiceIsPassedOver(t *testing.T) {
	for name, differs := range map[string]bool{"the same": false, "another one": true} {
		f := newFederation(t, 64<<20)
		f.job("site-2")
		f.idle(60)
		entries := f.entries
		f.close()
		if differs {
			entries[len(entries)-30] = f.entry(5)
		}
		kept := f.files()[0]
		f.dir = t.TempDir()
		f.open(64 << 20)
		f.entries = nil
		for _, entry := range entries {
			f.apply(entry)
		}
		f.idle(60)
		f.close()
		b, err := os.ReadFile(kept)
		if err == nil {
			err = os.WriteFile(filepath.Join(f.dir, "00000000.history"), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		r := f.verify(f.dir, replay.Options{})
		last := f.replica.Index()
		if x := r.Difference; (x != nil) != differs || !differs && (r.End.Entry != last || len(r.Gaps) > 0) {
			t.Errorf("%s: %v, end %d of %d", name, x, r.End.Entry, last)
		}
		var out bytes.Buffer
		if err = (&history.Export{}).Write(f.source(f.dir), &out); (err != nil) != differs {
			t.Errorf("%s: export: %v", name, err)
		}
		if !differs {
			r = f.verify(writeFile(t, out.Bytes()), replay.Options{})
			if r.Difference != nil || r.End.Entry != last {
				t.Errorf("exported: %v, end %d", r.Difference, r.End.Entry)
			}
		}
	}
}
