package keys

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node/journal"
	"github.com/cloudshare/cloudshare/node/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestKeyNames: "k/3" is line 3 of "k", however it came, and nothing else is.
func TestKeyNames(t *testing.T) {
	for text, same := range map[string]Name{
		"k/3":                   NameOf("k", 3),
		"k/2/3":                 NameOf("k/2", 3),
		"/7":                    NameOf("", 7),
		"k/" + "4294967295":     NameOf("k", 4294967295),
		"k//1":                  NameOf("k/", 1),
		"job of 2026/11/20 /12": NameOf("job of 2026/11/20 ", 12),
	} {
		if NameOf(text, 0) != same {
			t.Errorf("%q is not the line that it names", text)
		}
	}
	for _, text := range []string{"k", "k/", "k/0", "k/03", "k/+3", "k/-3", "k/3 ", "k/4294967296", "k/x", "/"} {
		if name := NameOf(text, 0); name.line != 0 || name.hash != NameOf(text, 1).hash {
			t.Errorf("%q is taken for a line: %v", text, name)
		}
	}
}

// model is the plain form of a Book: one entry for every text.
type model map[string]modelLine

type modelLine struct {
	job  uint64
	body byte
	step uint32
}

// text is a key's as clients may write it.
func text(key string, line uint32) string {
	if line == 0 {
		return key
	}
	return fmt.Sprintf("%s/%d", key, line)
}

// forget drops what is over.
func (m model) forget(now time.Duration) {
	for k, v := range m {
		if Over(v.step, now) {
			delete(m, k)
		}
	}
}

// rig is a book, its journal and what a plain map holds.
type rig struct {
	book   Book
	want   model
	writes []record.Write
	j      *record.Journal
	up     time.Duration // that the process has run
	job    uint64        // the next one
}

func (r *rig) commit(rt *rapid.T) {
	if err := r.j.Commit(r.writes); err != nil {
		rt.Fatal(err)
	}
	r.writes = nil
}

// add enters n lines of a key as consecutive jobs, but those that are held.
func (r *rig) add(rt *rapid.T, key string, first, n uint32) {
	for l := first; l-first < n && (l > 0 || first == 0); l++ {
		name := NameOf(key, l)
		if _, _, held := r.book.Find(name); held {
			continue
		}
		r.book.Add(name, r.job, Body{byte(l)}, &r.writes)
		r.want[text(key, l)] = modelLine{r.job, byte(l), StepOf(r.book.Clock())}
		r.job++
	}
	r.book.Write(&r.writes)
	r.commit(rt)
}

func (r *rig) restart(rt *rapid.T) {
	r.book = NewBook()
	if err := r.book.Recover(r.j, r.up); err != nil {
		rt.Fatal(err)
	}
	r.commit(rt)
}

func (r *rig) check(rt *rapid.T) {
	for text, want := range r.want {
		job, body, held := r.book.Find(NameOf(text, 0))
		if !held || job != want.job || body != (Body{want.body}) {
			rt.Fatalf("%s gives job %d, body %x, held %t; want %+v", text, job, body, held, want)
		}
	}
	if lines := checkBook(rt, &r.book); lines != len(r.want) {
		rt.Fatalf("%d lines are held, want %d", lines, len(r.want))
	}
}

// TestBookAgainstModel: whatever is added, dropped, forgotten and read again
// from the journal, the book holds what a plain map would.
func TestBookAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &rig{book: NewBook(), want: model{}, j: openJournal(rt, t.TempDir()), job: 1}
		defer func() { _ = r.j.Close() }()
		key := rapid.SampledFrom([]string{"a", "a/1", "b"})
		line := rapid.SampledFrom([]uint32{
			0, 1, 2, 3, 254, 256, 300, slotLines - 3, slotLines, 3 * slotLines,
			1<<32 - 300,
		})
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				text, first := key.Draw(rt, "key"), line.Draw(rt, "line")
				n := rapid.SampledFrom([]uint32{1, 2, 7, 300}).Draw(rt, "lines")
				if first == 0 {
					n = 1
				}
				r.job += uint64(rapid.IntRange(0, 1).Draw(rt, "gap"))
				r.add(rt, text, first, n)
			},
			"drop": func(rt *rapid.T) {
				k, l := key.Draw(rt, "key"), line.Draw(rt, "line")
				r.book.Drop(NameOf(k, l), &r.writes)
				delete(r.want, text(k, l))
				r.commit(rt)
			},
			"later": func(rt *rapid.T) {
				r.up += rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Hour, Lifetime}).Draw(rt, "later")
				r.book.Advance(r.up)
				r.want.forget(r.book.Clock())
				r.book.noteClock(&r.writes) // as with the next tick
				r.commit(rt)
			},
			"expire": func(rt *rapid.T) {
				r.book.Expire(&r.writes)
				r.commit(rt)
			},
			"restart": func(rt *rapid.T) {
				// of the process before the broker
				r.up = rapid.SampledFrom([]time.Duration{0, time.Hour, 48 * time.Hour}).Draw(rt, "up")
				r.restart(rt)
			},
			"": r.check,
		})
		r.book.Advance(r.up + 2*Lifetime)
		r.book.Expire(&r.writes)
		r.commit(rt)
		r.isEmpty(rt)
	})
}

// isEmpty checks that neither the book nor its journal holds anything.
func (r *rig) isEmpty(rt *rapid.T) {
	left := 0
	if err := r.j.Each(record.BucketKeys, func(_, _ []byte) error { left++; return nil }); err != nil {
		rt.Fatal(err)
	}
	b := &r.book
	if left+b.Len()+b.bytes+len(b.runs)+len(b.parts)+len(b.due.runs)+len(b.due.steps)+len(b.stale) != 0 {
		rt.Fatalf("after two days %d records and %+v are left", left, *b)
	}
}

func openJournal(t rapid.TB, dir string) *record.Journal {
	j, err := record.OpenWith(journal.Options{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Found by review: each keyed request that was refused left an entry behind for
// a day, which no bound counted.
func TestDroppedKeysLeaveNothing(t *testing.T) {
	b, writes := NewBook(), []record.Write{}
	b.Add(NameOf("held", 0), 1, Body{}, &writes)
	for i := range uint32(1000) {
		b.Add(NameOf(fmt.Sprintf("k%d", i), 0), uint64(i)+2, Body{}, &writes)
		b.Add(NameOf("many", i+1), uint64(i)+1002, Body{}, &writes)
	}
	b.Write(&writes)
	for i := range uint32(1000) {
		b.Drop(NameOf(fmt.Sprintf("k%d", i), 0), &writes)
		b.Drop(NameOf("many", i+1), &writes)
	}
	if b.Len() != 1 || b.Bytes() != runBytes+len(Body{}) || len(b.due.steps) != 1 ||
		len(b.due.runs[b.due.steps[0]]) != 1 {
		t.Errorf("%d keys, %d bytes and %v due; want one key", b.Len(), b.Bytes(), b.due)
	}
	if n := cap(b.due.runs[b.due.steps[0]]); n > 4*leastShrunk {
		t.Errorf("there is room for %d runs where one is held", n)
	}
}

// TestRefusedRecords: what this version did not write is an error, never a key.
func TestRefusedRecords(t *testing.T) {
	for name, r := range map[string]lineRun{
		"of the far future": {job: 1, step: maxStep + 1, bodies: make([]Body, 1)},
		"of no step":        {job: 1, bodies: make([]Body, 1)},
		"without a line":    {job: 1, step: 1},
	} {
		w := r.put(keyHash{1})
		if _, _, err := decodeRun(w.Key, w.Value); !errors.Is(err, errBadRun) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := (&lineRun{job: 1, step: 1, bodies: make([]Body, 1)}).put(keyHash{1})
	if _, _, err := decodeRun(w.Key, w.Value[1:]); !errors.Is(err, errBadRun) {
		t.Errorf("of another version: %v", err)
	}
}

// checkBook checks the book's invariants, and counts the lines that are not over.
func checkBook(rt *rapid.T, k *Book) (lines int) {
	bytes, hashes, due := 0, map[keyHash]bool{}, 0
	for slot, runs := range k.runs {
		hashes[slot.hash] = true
		next := uint64(0)
		for _, r := range runs {
			if uint64(r.first) < next || len(r.bodies) == 0 || len(r.bodies) > runLines ||
				r.first/slotLines != slot.part {
				rt.Fatalf("run %d of slot %d does not stand in its place", r.first, slot.part)
			}
			next = uint64(r.first) + uint64(len(r.bodies))
			bytes += runBytes + 8*len(r.bodies)
			due++
			if k.due.runs[r.step][r.due] != (Name{slot.hash, r.first}) {
				rt.Fatalf("run %d of slot %d does not stand where it says", r.first, slot.part)
			}
			if !Over(r.step, k.clock) {
				lines += len(r.bodies)
			}
		}
		if (next-1)/slotLines != uint64(slot.part) {
			rt.Fatalf("the runs of slot %d reach out of it", slot.part)
		}
	}
	for _, list := range k.due.runs {
		due -= len(list)
	}
	if due != 0 || len(k.due.steps) != len(k.due.runs) || !slices.IsSorted(k.due.steps) {
		rt.Fatalf("%d runs are not due once each, in %d steps of %d", due, len(k.due.steps), len(k.due.runs))
	}
	if bytes != k.bytes || len(hashes) != k.held {
		rt.Fatalf("counted %d bytes and %d keys, want %d and %d", k.bytes, k.held, bytes, len(hashes))
	}
	return lines
}
