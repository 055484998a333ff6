package walfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// opened creates a file of 8 KiB and appends records to it.
func opened(t *testing.T, records ...string) (*File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.wal")
	w, old, err := Open(path, 8<<10, 0)
	if err != nil || len(old) != 0 || !w.Empty() {
		t.Fatalf("a new file holds %q: %v", old, err)
	}
	t.Cleanup(func() { _ = w.Close() })
	for _, r := range records {
		if err := w.Append([]byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	return w, path
}

// reopened opens the file again, as another process would, and returns its records.
func reopened(t *testing.T, path string, noted uint64) (*File, string, error) {
	t.Helper()
	w, records, err := Open(path, 8<<10, noted)
	if err != nil {
		return nil, "", err
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, string(bytes.Join(records, []byte("|"))), nil
}

// Records survive a crash until a Reset invalidates them; then the file is overwritten.
func TestRecordsStayUntilReset(t *testing.T) {
	w, path := opened(t, "one", "two", "", "four, longer")
	first := w.Generation()
	if _, got, err := reopened(t, path, first-1); got != "one|two||four, longer" {
		t.Fatalf("%q, %v", got, err)
	}
	if err := w.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, got, err := reopened(t, path, first); got != "" || err != nil {
		t.Fatalf("after a reset %q, %v", got, err)
	}
	if err := w.Append([]byte("five")); err != nil {
		t.Fatal(err)
	}
	again, got, err := reopened(t, path, first)
	if got != "five" || err != nil || again.Generation() != first+1 || again.Empty() {
		t.Fatalf("%q, %v", got, err)
	}
	if err := again.Append([]byte("six")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := reopened(t, path, first); got != "five|six" {
		t.Fatalf("%q, %v", got, err)
	}
}

// A store that stopped between its commit and the Reset has the records, and maybe newer ones from
// the same commit: they are not taken over again.
func TestWhatTheStoreHoldsIsNotReturned(t *testing.T) {
	w, path := opened(t, "one", "two")
	again, got, err := reopened(t, path, w.Generation())
	if got != "" || err != nil || !again.Empty() || again.Generation() != w.Generation()+1 {
		t.Fatalf("%q, %v", got, err)
	}
	if err := again.Append([]byte("three")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := reopened(t, path, w.Generation()); got != "three" {
		t.Fatalf("%q, %v", got, err)
	}
}

// Without room nothing is written; a Reset makes room.
func TestFull(t *testing.T) {
	w, path := opened(t)
	record := bytes.Repeat([]byte("r"), 1000)
	n := 0
	for ; w.Fits(len(record)); n++ {
		if err := w.Append(record); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Append(record); !errors.Is(err, ErrFull) || n != 7 {
		t.Fatalf("after %d records of 1000 bytes in 8 KiB: %v", n, err)
	}
	if _, got, err := reopened(t, path, w.Held()); len(got) != n*1001-1 {
		t.Fatalf("%d bytes: %v", len(got), err)
	}
	if err := w.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(record); err != nil {
		t.Error(err)
	}
}

// A write that is cut off at any byte leaves the records before it intact. Its remains are overwritten.
func TestAWriteThatWasCutOff(t *testing.T) {
	w, path := opened(t, "one", "two")
	before, end := image(t, path), w.end
	if err := w.Append(bytes.Repeat([]byte("three"), 20)); err != nil {
		t.Fatal(err)
	}
	after := image(t, path)
	for cut := end; cut < end+headSize+100; cut++ { // behind that is padding
		torn := append(append([]byte{}, after[:cut]...), before[cut:]...)
		rewrite(t, path, torn)
		again, got, err := reopened(t, path, w.Held())
		if got != "one|two" {
			t.Fatalf("cut at %d: %q, %v", cut-end, got, err)
		}
		if err := again.Append([]byte("3")); err != nil {
			t.Fatal(err)
		}
		if _, got, err := reopened(t, path, w.Held()); got != "one|two|3" {
			t.Fatalf("cut at %d, then written: %q, %v", cut-end, got, err)
		}
		// The end of the write reached the disk, its beginning did not.
		torn = append(append(append([]byte{}, after[:end]...), before[end:cut+1]...), after[cut+1:]...)
		if torn[cut] == after[cut] {
			continue
		}
		rewrite(t, path, torn)
		if _, got, err := reopened(t, path, w.Held()); got != "one|two" {
			t.Fatalf("only the end from %d on: %q, %v", cut-end, got, err)
		}
	}
}

// A durable record that cannot be read is damage, not the end of the file: it must not be dropped
// silently. Only for the last record damage cannot be told from a write that was cut off.
func TestDamage(t *testing.T) {
	w, path := opened(t, "one", "two", "three")
	whole := image(t, path)
	last := w.end - headSize - align
	for at := range last {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x10
		rewrite(t, path, bad)
		_, got, err := reopened(t, path, w.Held())
		if !errors.Is(err, ErrDamaged) && got != "one|two|three" { // padding may change
			t.Fatalf("byte %d: %q, %v", at, got, err)
		}
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "cut": whole[:100], "zeros": make([]byte, 8<<10), "text": bytes.Repeat([]byte("x"), 8<<10),
	} {
		rewrite(t, path, bad)
		if _, _, err := reopened(t, path, w.Held()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Damage of several last records, such as that of the sector that holds them, is not a cut-off write
// either: the last one was begun when those before it were durable.
func TestDamageAtTheEnd(t *testing.T) {
	w, path := opened(t, "one", "two", "three")
	bad := image(t, path)
	for _, word := range []string{"two", "three"} {
		bad[bytes.Index(bad, []byte(word))] ^= 0x10
	}
	rewrite(t, path, bad)
	if _, got, err := reopened(t, path, w.Held()); !errors.Is(err, ErrDamaged) {
		t.Errorf("%q, %v", got, err)
	}
}

// A file that lost its end is damaged, however long it still is.
func TestACutFile(t *testing.T) {
	w, path := opened(t, "one")
	for w.end < 7<<10 {
		if err := w.Append([]byte("more")); err != nil {
			t.Fatal(err)
		}
	}
	for _, reset := range []bool{false, true} {
		if reset {
			if err := w.Reset(); err != nil {
				t.Fatal(err)
			}
		}
		whole := image(t, path)
		for _, size := range []int{minSize, 6 << 10, 9 << 10} {
			rewrite(t, path, append(bytes.Clone(whole), make([]byte, 1<<10)...)[:size])
			if _, _, err := reopened(t, path, w.Held()); !errors.Is(err, ErrDamaged) {
				t.Errorf("%d bytes of 8192: %v", size, err)
			}
		}
		rewrite(t, path, whole)
	}
}

// The file of another store is refused, even if both were created in the same way.
func TestAFileOfAnotherStore(t *testing.T) {
	w, _ := opened(t, "ours")
	_, path := opened(t, "theirs")
	for _, noted := range []uint64{w.Held(), w.Generation()} {
		if _, got, err := reopened(t, path, noted); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// File and store belong together: a file that is missing, or older or newer than the store, is refused.
func TestCopiesOfDifferentMoments(t *testing.T) {
	w, path := opened(t, "one")
	for range 2 {
		if err := w.Reset(); err != nil {
			t.Fatal(err)
		}
	}
	third, whole := w.Generation(), image(t, path)
	for noted := third - 2; noted < third+3; noted++ {
		rewrite(t, path, whole)
		_, _, err := reopened(t, path, noted)
		if fits := noted == third-1 || noted == third; fits != (err == nil) || !fits && !errors.Is(err, ErrDamaged) {
			t.Errorf("generation %d beside a store that noted %d: %v", third, noted, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := reopened(t, path, third); !errors.Is(err, ErrDamaged) {
		t.Errorf("missing: %v", err)
	}
	_, path = opened(t, "of a store that is gone")
	if _, _, err := reopened(t, path, 0); !errors.Is(err, ErrDamaged) {
		t.Errorf("records beside an empty store: %v", err)
	}
}

// After a failed write every later one fails: the disk's content is unknown.
func TestAFailedWriteIsTheLast(t *testing.T) {
	w, path := opened(t, "one")
	ours := w.f
	closed, err := os.Open(path) // for reading only
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	w.f = closed
	first := w.Append([]byte("two"))
	w.f = ours
	if second := w.Append([]byte("two")); first == nil || !errors.Is(second, first) {
		t.Errorf("%v, then %v", first, second)
	}
	if err := w.Reset(); err == nil {
		t.Error("it was reset")
	}
}

// A Reset of which only some sectors reached the disk leaves the previous or the next generation,
// never a damaged file.
func TestAResetThatWasCutOff(t *testing.T) {
	const sector = 512
	w, path := opened(t, strings.Repeat("a", 2*sector), strings.Repeat("b", 4096), "c")
	before, held := image(t, path), w.Held()
	if err := w.Reset(); err != nil {
		t.Fatal(err)
	}
	after := image(t, path)
	for at := 0; at < len(after); at += sector {
		torn := bytes.Clone(before)
		copy(torn[at:at+sector], after[at:])
		rewrite(t, path, torn)
		if _, _, err := reopened(t, path, held+1); err != nil {
			t.Errorf("only the sector at %d was written: %v", at, err)
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add(frame(frame(nil, 1, 0, nil), 1, 1, []byte("r")), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		img := make([]byte, minSize)
		copy(img, head(1, minSize))
		copy(img[int(at)%minSize:], b)
		w := &File{size: minSize}
		records, err := w.scan(img)
		if err == nil && (w.end > w.size || uint64(len(records))+1 != w.next) {
			t.Fatal(fmt.Sprint(w.end, w.next, len(records)))
		}
	})
}

func image(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func rewrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOpenAlone: a store that notes nothing gets what it appended since the last Reset, as often as it asks.
func TestOpenAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal")
	nothing := func(*File) error { return nil }
	for _, c := range []struct {
		want string
		then func(*File) error
	}{
		{"", func(w *File) error { return w.Append([]byte("first")) }},
		{"first", nothing},
		{"first", func(w *File) error { return errors.Join(w.Reset(), w.Append([]byte("second"))) }},
		{"second", nothing},
	} {
		w, records, err := OpenAlone(path, minSize)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(bytes.Join(records, []byte("|"))); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		if err = errors.Join(c.then(w), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWipe: nothing of a record is left in the file, past the cache and through it, and it goes on as behind a Reset.
func TestWipe(t *testing.T) {
	for _, cached := range []bool{false, true} {
		w, path := opened(t)
		if cached && w.blocks != nil {
			w.blocks = nil
			if err := w.setDirect(false); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			for range 3 {
				if err := w.Append(bytes.Repeat([]byte("secret"), 300)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Wipe(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil || bytes.Contains(b, []byte("secret")) {
				t.Fatalf("a record can be read: %v", err)
			}
		}
		if err := errors.Join(w.Append([]byte("next")), w.Close()); err != nil {
			t.Fatal(err)
		}
		if _, records, err := OpenAlone(path, minSize); err != nil || len(records) != 1 || string(records[0]) != "next" {
			t.Errorf("read %q: %v", records, err)
		}
	}
}
