package outputs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/executor"
)

// model is what a store must hold: all that was put, in that order, but for what its
// bounds allow to go.
type model struct {
	*shelf
	rt    *rapid.T
	texts map[int]string
	ends  map[int]time.Time
	lost  map[int]bool // torn off by a crash before Put returned
	next  int
}

// TestModel: whatever is put, removed, torn off and opened again, in any order.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := configAt(t.TempDir())
		cfg.MaxBytes = rapid.SampledFrom([]int64{20 << 10, 300 << 10, 1 << 30}).Draw(rt, "max")
		m := &model{
			shelf: openShelf(t, cfg), rt: rt, texts: map[int]string{}, ends: map[int]time.Time{},
			lost: map[int]bool{},
		}
		defer func() { _ = m.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"put":    m.add,
			"wait":   m.wait,
			"reopen": func(*rapid.T) { m.reopen() },
			"tear":   m.tear,
			"index":  m.dropIndex,
		})
	})
}

func (m *model) add(t *rapid.T) {
	var items []Item
	for range rapid.IntRange(1, 5).Draw(t, "outputs") {
		n := m.next
		m.next++
		m.texts[n] = fmt.Sprint(n, " ", strings.Repeat("z",
			rapid.SampledFrom([]int{0, 1, 900, 20_000, MaxInline - 10}).Draw(t, "size")))
		m.ends[n] = m.now.Add(-time.Duration(rapid.IntRange(0, 100).Draw(t, "minutes")) * time.Minute)
		it := item(n, m.texts[n], "")
		it.At = m.ends[n]
		items = append(items, it)
	}
	if err := m.Put(items); err != nil {
		t.Fatal(err)
	}
}

func (m *model) wait(t *rapid.T) {
	m.at(m.now.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "minutes")) * time.Minute))
	m.Sweep()
}

// tear is a crash in the middle of a write: an output that was never told to be kept.
func (m *model) tear(t *rapid.T) {
	if m.file == nil {
		return
	}
	g := m.segments[len(m.segments)-1]
	it := item(m.next, "torn", "")
	m.lost[m.next] = true
	m.next++
	frame := appendFrame(nil, g.salt, &it)
	path := filepath.Join(m.cfg.Dir, fileOf(g.number, segmentExt))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.Write(frame[:rapid.IntRange(0, len(frame)-1).Draw(t, "bytes")])
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	m.reopen()
}

// dropIndex is a disk that did not take an index.
func (m *model) dropIndex(t *rapid.T) {
	if len(m.segments) > 0 {
		g := rapid.SampledFrom(m.segments).Draw(t, "segment")
		m.folder.remove(fileOf(g.number, indexExt))
	}
	m.reopen()
}

// check: each output reads as it was put, or is gone for a reason.
func (m *model) check(t *rapid.T) {
	st := m.Stats()
	if st.Bytes > st.MaxBytes {
		t.Fatalf("%d bytes of %d", st.Bytes, st.MaxBytes)
	}
	var kept int64
	for n := range m.next {
		r, err := m.Store.Open(numbered(n), 0)
		if err == nil {
			kept++
			got, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err != nil || string(got) != m.texts[n] || m.lost[n] {
				t.Fatalf("task %d: %.50q, %v", n, got, err)
			}
			if age := m.now.Sub(m.ends[n]); age > m.cfg.Keep+2*m.span()+time.Minute && m.swept() {
				t.Fatalf("task %d is kept, %s old", n, age)
			}
			continue
		}
		if !errors.Is(err, executor.ErrUnknownAttempt) {
			t.Fatal(err)
		}
		if strings.Contains(err.Error(), "max_bytes") && int64(len(m.texts[n])) > m.max-maxHead {
			kept++ // as a note
			continue
		}
		m.checkGone(t, n)
	}
	if kept != st.Outputs {
		t.Fatalf("%d can be read, %d are counted", kept, st.Outputs)
	}
}

// swept removes what is due, so that what is left is not.
func (m *model) swept() bool {
	m.Sweep()
	return true
}

// checkGone: only what the bounds do not cover is gone.
func (m *model) checkGone(t *rapid.T, n int) {
	old := m.now.Sub(m.ends[n]) > m.cfg.Keep
	if m.lost[n] || old {
		return
	}
	var after int64 // what was put since
	for later := n; later < m.next; later++ {
		after += max(int64(len(m.texts[later]))+fixed+3, minCharge)
	}
	if share := m.max / fractions; after < m.max-share-maxFrame {
		t.Fatalf("task %d is gone: since then %d bytes were put, %d may be kept", n, after, m.max)
	}
	if why, ok := m.Removed("a.1", uint32(n), 1); ok && why.ByAge {
		t.Fatalf("task %d, %s old, was removed by age", n, m.now.Sub(m.ends[n]))
	}
	if len(m.aside) > 0 {
		t.Fatalf("put aside: %v", m.aside)
	}
}
