package replay_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/history/replay"
)

// recordsOf returns those of a segment.
func recordsOf(t testing.TB, path string) (list []history.Record) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	r, err := history.NewReader(f, st.Size())
	for err == nil {
		var rec history.Record
		if rec, err = r.Next(); err == nil {
			list = append(list, rec)
		}
	}
	return list
}

// hurt changes a file's bytes from one on.
func hurt(t testing.TB, path string, from int64, change func(b []byte)) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		change(b[from:])
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func flip(b []byte) { b[0] ^= 0x40 }

// zeros is what a disk makes of a sector.
func zeros(n int) func([]byte) { return func(b []byte) { clear(b[:n]) } }

// segments is a federation whose broker has kept at least three.
func segments(t testing.TB) (*federation, []string) {
	t.Helper()
	f := newFederation(t, 1<<20)
	for range 170 {
		f.orderJunk()
	}
	f.job("site-2")
	f.idle(90)
	f.close()
	all := f.files()
	if len(all) < 3 {
		t.Fatalf("%d segments", len(all))
	}
	return f, all
}

// find returns the record of a kind that stands in the middle of a segment.
func find(t testing.TB, path string, kind history.Kind) (rec history.Record) {
	t.Helper()
	var of []history.Record
	for _, r := range recordsOf(t, path) {
		if r.Kind == kind {
			of = append(of, r)
		}
	}
	if len(of) == 0 {
		t.Fatalf("%s has no record %q", path, kind)
	}
	return of[len(of)/2]
}

// exported is what a folder's export looks like when it is gone through.
func (f *federation) exported() (*replay.Report, []string) {
	f.t.Helper()
	var out bytes.Buffer
	x := history.Export{}
	if err := x.Write(f.source(f.dir), &out); err != nil {
		f.t.Fatal(err)
	}
	return f.verify(writeFile(f.t, out.Bytes()), replay.Options{Keys: realKeys()}), x.Notes
}

// Damage in a statement, or in a state to which the entries before lead, costs no entry: all is gone through.
func TestDamagedStatementOrStateCostsNoEntry(t *testing.T) {
	for name, kind := range map[string]history.Kind{
		"statement": history.KindStatement, "state": history.KindState, "begun": history.KindBegun,
	} {
		for _, part := range []int64{0, 1, 5} { // kind, length, contents
			f, all := segments(t)
			rec := find(t, all[1], kind)
			hurt(t, all[1], rec.At+part, flip)
			r := f.verify(f.dir, replay.Options{})
			if r.Verdict != replay.Proven || len(r.Gaps) > 0 || r.End.Entry != f.replica.Index() ||
				len(r.Damaged) == 0 || r.Damaged[0].First != 0 || r.Damaged[0].From != rec.At {
				if part != 1 || len(r.Gaps) != 1 || r.Difference != nil { // a length that is changed leads anywhere
					t.Errorf("%s, %d: %v, end %d of %d, gaps %+v, %+v", name, part, r.Difference, r.End.Entry, f.replica.Index(),
						r.Gaps, r.Damaged)
				}
				continue
			}
			if r, notes := f.exported(); r.Verdict != replay.Proven || len(r.Gaps) > 0 || len(notes) == 0 {
				t.Errorf("%s, %d, exported: %v, gaps %+v, %v", name, part, r.Difference, r.Gaps, notes)
			}
		}
	}
}

// An entry that is damaged in an older segment, or some in a row, are named exactly, and all behind the next state is
// gone through. It ended the audit.
func TestDamagedEntriesAreNamedAndGoneBeyond(t *testing.T) {
	for name, change := range map[string]func([]byte){
		"a bit": func(b []byte) { flip(b[20:]) }, "a sector": zeros(4096), "many": zeros(30_000),
	} {
		f, all := segments(t)
		rec := find(t, all[1], history.KindEntry)
		hurt(t, all[1], rec.At, change)
		list, next := recordsOf(t, all[1]), find(t, all[2], history.KindBegun)
		r := f.verify(f.dir, replay.Options{Keys: realKeys()})
		if r.Verdict != replay.Proven || r.End.Entry != f.replica.Index() || len(r.Gaps) != 1 || len(r.Damaged) != 1 ||
			r.Cut {
			t.Fatalf("%s: %v, end %d, gaps %+v, %+v", name, r.Difference, r.End.Entry, r.Gaps, r.Damaged)
		}
		d, g, last := r.Damaged[0], r.Gaps[0], list[len(list)-1]
		if d.First != rec.Number || d.First != g.Behind+1 || d.Last < d.First || d.Last >= g.To ||
			g.To != next.Number || !g.Damaged || name == "a bit" && d.Last != d.First ||
			name == "many" && d.Last < d.First+5 || last.End > d.From {
			t.Errorf("%s: %+v, %+v, next state %d, entry %d", name, d, g, next.Number, rec.Number)
		}
		r, notes := f.exported()
		if r.Verdict != replay.Proven || len(r.Gaps) != 1 || r.Gaps[0].Behind != g.Behind || r.Gaps[0].To != g.To ||
			!strings.Contains(strings.Join(notes, " "), history.Range(d.First, d.Last)) {
			t.Errorf("%s, exported: %v, gaps %+v, %v", name, r.Difference, r.Gaps, notes)
		}
	}
}

// What stands behind damage in the newest segment stays, and is cut off only if the log brings it again: then nothing
// is missing. It was cut off at each start.
func TestDamageInTheNewestSegment(t *testing.T) {
	for name, snapshot := range map[string]bool{"the log has all": false, "the log begins with a snapshot": true} {
		f := newFederation(t, 64<<20)
		f.idle(30)
		f.job("site-2")
		f.idle(60)
		var path string
		var size int64
		var rec history.Record
		f.restart(func() {
			path = f.files()[0]
			rec = find(t, path, history.KindEntry)
			hurt(t, path, rec.At, func(b []byte) { flip(b[9:]) })
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			size = st.Size()
		}, snapshot)
		cut := f.verify(f.dir, replay.Options{})
		f.idle(90)
		f.close()
		r := f.verify(f.dir, replay.Options{Keys: realKeys()})
		if r.Verdict != replay.Proven || r.End.Entry != f.replica.Index() {
			t.Errorf("%s: %v, end %d of %d", name, r.Difference, r.End.Entry, f.replica.Index())
		}
		st, err := os.Stat(path)
		switch {
		case err != nil:
			t.Error(err)
		case !snapshot && (len(r.Gaps) > 0 || len(r.Damaged) > 0):
			t.Errorf("%s: gaps %+v, %+v", name, r.Gaps, r.Damaged)
		case snapshot && (st.Size() != size || len(r.Gaps) != 1 || r.Damaged[0].First != rec.Number ||
			f.keeper.Gaps() != 1):
			t.Errorf("%s: %d bytes of %d, gaps %+v, %+v", name, st.Size(), size, r.Gaps, r.Damaged)
		case snapshot && (cut.Verdict != replay.NotProven || !cut.Cut || cut.End.Entry != rec.Number-1):
			t.Errorf("%s: before the next state: %s, cut %v, end %d", name, cut.Verdict, cut.Cut, cut.End.Entry)
		}
	}
}

// A member can put what looks like a record into a command. Where the next one had to be looked for it is not executed.
func TestRecordWithinAnEntryIsNotGoneOnWith(t *testing.T) {
	f := newFederation(t, 64<<20)
	f.idle(50)
	number := f.replica.Index() + 1
	inner := f.entry(5)
	fake := binary.AppendUvarint([]byte{'e'}, uint64(len(inner)+len(binary.AppendUvarint(nil, number))))
	fake = append(binary.AppendUvarint(fake, number), inner...)
	fake = binary.LittleEndian.AppendUint32(fake, crc32.Checksum(fake, crc32.MakeTable(crc32.Castagnoli)))
	f.apply(append([]byte(strings.Repeat("x", 300)), fake...)) // which all refuse
	f.idle(60)
	f.endWith(t, func(path string) {
		for _, rec := range recordsOf(t, path) {
			if rec.Number == number && rec.Kind == history.KindEntry {
				hurt(t, path, rec.At, zeros(8))
			}
		}
	})
	r := f.verify(f.dir, replay.Options{})
	if r.Difference != nil || !r.Cut || r.End.Entry != number-1 || len(r.Damaged) != 2 {
		t.Errorf("%v, cut %v, end %d, %+v", r.Difference, r.Cut, r.End.Entry, r.Damaged)
	}
}

// endWith ends the broker, and changes its newest segment.
func (f *federation) endWith(t *testing.T, change func(path string)) {
	t.Helper()
	f.close()
	all := f.files()
	change(all[len(all)-1])
}

// Whatever a disk does to a broker's segments, it is no difference, what was gone through is what sites have
// signed, and what was not is a gap or behind the end.
func TestAnyDamageIsAGapAndNoDifference(t *testing.T) {
	f, all := segments(t)
	var whole [][]byte
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, b)
	}
	rapid.Check(t, func(t *rapid.T) {
		for i, path := range all {
			b := bytes.Clone(whole[i])
			for range rapid.IntRange(0, 2).Draw(t, "wounds") {
				from := rapid.IntRange(0, len(b)-1).Draw(t, "from")
				to := min(len(b), from+rapid.SampledFrom([]int{1, 1, 8, 512, 4096, 1 << 16}).Draw(t, "bytes"))
				if rapid.Bool().Draw(t, "zeros") {
					clear(b[from:to])
				} else {
					copy(b[from:to], rapid.SliceOfN(rapid.Byte(), to-from, to-from).Draw(t, "garbage"))
				}
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		src, err := history.OpenSource(f.dir)
		if err != nil {
			return // no segment has a head
		}
		defer src.Close()
		r, err := replay.Verify(f.t.Context(), src, replay.Options{Keys: realKeys()})
		if err != nil {
			return // no state is whole
		}
		if r.Difference != nil || len(r.Dissent) > 0 {
			t.Fatalf("%v, %v", r.Difference, r.Dissent)
		}
		through := r.Entries
		for _, g := range r.Gaps {
			through += g.To - g.Behind
		}
		if through != r.End.Entry-r.Begin.Entry {
			t.Fatalf("%d entries and %+v from %d to %d", r.Entries, r.Gaps, r.Begin.Entry, r.End.Entry)
		}
		for _, d := range r.Damaged {
			if d.First > d.Last || d.From >= d.To {
				t.Fatalf("%+v", d)
			}
		}
	})
}
