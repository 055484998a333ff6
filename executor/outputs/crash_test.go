package outputs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestCrashAtEveryByte: a segment that was cut off anywhere has every output that was
// whole, and takes the next ones.
func TestCrashAtEveryByte(t *testing.T) {
	made := openShelf(t, configAt(t.TempDir()))
	ends := []int64{segmentHead}
	texts := make([]string, 5)
	for n := range texts {
		texts[n] = fmt.Sprintf("output %d %s", n, bytes.Repeat([]byte("y"), n*n))
		made.put(item(n, texts[n], "e"))
		ends = append(ends, made.segments[0].size)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(filepath.Join(made.cfg.Dir, fileOf(0, segmentExt)))
	if err != nil {
		t.Fatal(err)
	}
	for _, tail := range [][]byte{nil, []byte(magic + "\x00\x00")} {
		for cut := range len(image) + 1 {
			s := openShelf(t, configAt(t.TempDir()))
			name := filepath.Join(s.cfg.Dir, fileOf(0, segmentExt))
			if err := os.WriteFile(name, append(bytes.Clone(image[:cut]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			s.reopen()
			s.put(item(99, "after", ""))
			s.reopen()
			checkCut(s, texts, ends, int64(cut))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkCut checks what is there after a segment was cut off.
func checkCut(s *shelf, texts []string, ends []int64, cut int64) {
	s.Helper()
	for n, want := range texts {
		got, whole := s.read(n, 0), ends[n+1] <= cut
		if whole && got != want || !whole && got == want {
			s.Fatalf("cut at %d: task %d: %q", cut, n, got)
		}
	}
	if got := s.read(99, 0); got != "after" {
		s.Fatalf("cut at %d: the next one: %q", cut, got)
	}
}

// TestPrintedFrameIsNone: a task that prints a frame, even one of this very segment,
// with the salt of another, puts no output into another's place when a part of the
// segment is damaged.
func TestPrintedFrameIsNone(t *testing.T) {
	victim := item(2, "forged", "")
	forged := appendFrame(nil, salt{1}, &victim)
	s := openShelf(t, configAt(t.TempDir()))
	s.put(item(1, "start "+string(forged), ""))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.cfg.Dir, fileOf(0, segmentExt))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[segmentHead+10]++
	if err = os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s.reopen()
	if got := s.read(2, 0); got == "forged" {
		t.Error("the printed frame counts")
	}
}

// FuzzScan: foreign bytes are read without a panic, what is read from them lies in
// them, and a frame among them is found.
func FuzzScan(f *testing.F) {
	it := item(1, "text", "errors")
	own := salt{1, 2, 3}
	whole := appendFrame(nil, own, &it)
	f.Add([]byte{}, []byte{})
	f.Add(whole, whole[:20])
	f.Add([]byte(magic+magic), bytes.Repeat([]byte{255}, 90))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		b := append(make([]byte, segmentHead), before...)
		b = append(append(b, whole...), after...)
		found := false
		scan(b, own, func(off int64, h *head) {
			if off < segmentHead || off+h.total() > int64(len(b)) {
				t.Fatalf("frame at %d of %d bytes in %d", off, h.total(), len(b))
			}
			found = found || off == segmentHead+int64(len(before)) && h.id == it.ID
		})
		if !found && !bytes.Contains(before, []byte(magic)) {
			t.Fatal("the frame was not found")
		}
	})
}

// FuzzIndex: foreign bytes are no index, or one that reads as it was written.
func FuzzIndex(f *testing.F) {
	f.Add(encodeIndex(&segment{size: 5, summary: summary{charge: 1}}, []entry{{2, 3}, {1, 4}}))
	f.Add([]byte(indexMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, entries, ok := decodeIndex(b)
		if ok && !bytes.Equal(encodeIndex(&g, entries), b) && isSorted(entries) {
			t.Fatal("it reads as something else")
		}
		searchIndex(bytes.NewReader(b), int64(len(b)), 7)
	})
}

func isSorted(entries []entry) bool {
	for i := range entries {
		if i > 0 && entries[i].key < entries[i-1].key {
			return false
		}
	}
	return true
}
