package replay_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/history/replay"
	"github.com/cloudshare/cloudshare/node/identity"
)

// document is an exported file, taken apart by whoever means to change it.
type document struct {
	head    []byte
	records []history.Record
}

// export writes what is kept into a file, and returns it.
func (f *federation) export(from, to uint64) []byte {
	f.t.Helper()
	var b bytes.Buffer
	x := history.Export{From: from, To: to, Header: history.Header{Site: "site-1"}}
	if err := x.Write(f.source(f.dir), &b); err != nil {
		f.t.Fatal(err)
	}
	return b.Bytes()
}

func (f *federation) parse(file []byte) *document {
	f.t.Helper()
	r, err := history.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		f.t.Fatal(err)
	}
	d := &document{head: file[:r.At()]}
	for rec, err := r.Next(); ; rec, err = r.Next() {
		if err != nil {
			return d
		}
		d.records = append(d.records, rec)
	}
}

// write makes a file of the records, with checksums that are right.
func (d *document) write(t testing.TB) string {
	t.Helper()
	b := slices.Clone(d.head)
	for _, rec := range d.records {
		contents := rec.Contents
		if rec.Kind != history.KindState && rec.Kind != history.KindStatement {
			contents = append(binary.AppendUvarint(nil, rec.Number), contents...)
		}
		from := len(b)
		b = append(binary.AppendUvarint(append(b, byte(rec.Kind)), uint64(len(contents))), contents...)
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[from:], crc32.MakeTable(crc32.Castagnoli)))
	}
	return writeFile(t, b)
}

func writeFile(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.history")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// at returns the place of an entry's record.
func (d *document) at(number uint64) int {
	return slices.IndexFunc(d.records, func(r history.Record) bool {
		return r.Kind == history.KindEntry && r.Number == number
	})
}

// played is a federation with some jobs, whose history begins with its founding.
func played(t testing.TB) *federation {
	f := newFederation(t, 64<<20)
	for range 15 {
		f.job("site-2")
	}
	f.idle(50)
	f.job("site-3")
	f.idle(40)
	f.close()
	return f
}

// Whoever changes a file is found out, and what he changed is named. between is where sites have signed.
func TestTamperedFilesAreNamed(t *testing.T) {
	f := played(t)
	whole := f.export(0, 0)
	if r := f.verify(writeFile(t, whole), replay.Options{}); r.Difference != nil || r.Statements < 6 {
		t.Fatalf("as it was written: %v, %d statements", r.Difference, r.Statements)
	}
	for name, c := range map[string]struct {
		change func(*document)
		kind   string
		entry  uint64 // 0 = any
		text   string
	}{
		"a byte of a signed command": {func(d *document) {
			rec := &d.records[d.at(20)]
			rec.Contents = bytes.Replace(rec.Contents, []byte("sleep 1"), []byte("sleep 9"), 1)
		}, replay.History, 0, "entry 20 is the first with commands that site-2, who is named there, has not signed"},
		"log time": {func(d *document) {
			rec := &d.records[d.at(30)]
			b, err := command.DecodeBatch(rec.Contents)
			if err != nil {
				t.Fatal(err)
			}
			b.Elapsed += 7
			rec.Contents = b.Append(nil)
		}, replay.History, 0, "has signed another history"},
		"an entry dropped": {func(d *document) {
			i := d.at(25)
			d.records = slices.Delete(d.records, i, i+1)
		}, replay.Entries, 25, "behind entry 24 comes entry 26"},
		"an entry dropped and all numbered again": {func(d *document) {
			i := d.at(25)
			d.records = slices.Delete(d.records, i, i+1)
			for k := range d.records {
				if rec := &d.records[k]; rec.Number > 25 && rec.Kind != history.KindBegun {
					rec.Number--
				}
			}
		}, replay.History, 0, "has signed another history"},
		"two entries swapped": {func(d *document) {
			a, b := d.at(20), d.at(21)
			d.records[a].Contents, d.records[b].Contents = d.records[b].Contents, d.records[a].Contents
		}, replay.History, 0, "has signed another history"},
		"an entry put in": {func(d *document) {
			d.records[d.at(22)].Contents = d.records[d.at(20)].Contents
		}, replay.History, 0, "has signed another history"},
		"the tail cut off, without an end": {func(d *document) {
			d.records = d.records[:d.at(70)]
		}, replay.Damaged, 69, "has no end"},
		"the tail cut off, with the old end": {func(d *document) {
			d.records = append(d.records[:d.at(100)], d.records[len(d.records)-1])
		}, replay.History, 99, "by the file's own end"},
	} {
		t.Run(name, func(t *testing.T) {
			d := f.parse(whole)
			c.change(d)
			r := f.verify(d.write(t), replay.Options{})
			if x := r.Difference; x == nil || x.Kind != c.kind || c.entry != 0 && x.Entry != c.entry ||
				!strings.Contains(x.What, c.text) || strings.Contains(x.What, "\n") {
				t.Errorf("%+v", x)
			}
		})
	}
}

// What a disk or a copy has changed is found at its place, whatever it hits.
func TestDamageIsFound(t *testing.T) {
	f := newFederation(t, 64<<20)
	f.idle(45)
	f.close()
	whole := f.export(0, 0)
	first := len(f.parse(whole).head)
	for at := first; at < len(whole); at += 31 {
		b := bytes.Clone(whole)
		b[at] ^= 0x10
		r, err := replay.Verify(t.Context(), f.source(writeFile(t, b)), replay.Options{})
		if err == nil && (r.Difference == nil || r.Difference.Kind != replay.Damaged) {
			t.Fatalf("byte %d: %+v", at, r.Difference)
		}
	}
	for at := first; at < len(whole); at += 211 {
		src, err := history.OpenSource(writeFile(t, whole[:at]))
		if err != nil {
			continue
		}
		if r, err := replay.Verify(t.Context(), src, replay.Options{}); err == nil && r.Difference == nil {
			t.Fatalf("cut at byte %d: nothing differs", at)
		}
		_ = src.Close()
	}
}

// late is a federation in which a task ran for so long before the history begins; its sites have signed the beginning,
// or not.
func late(t testing.TB, runMs int64, signed bool) *federation {
	f := newFederation(t, 64<<20)
	f.runMs = runMs
	f.job("site-2")
	f.rejoin()
	for _, site := range siteNames {
		f.silent[site] = !signed
	}
	f.idle(45)
	clear(f.silent)
	f.idle(45)
	f.close()
	return f
}

// giveState replaces the state by another document's, but for its first record, which is the chain.
func (d *document) giveState(o *document) {
	begun := func(r history.Record) bool { return r.Kind == history.KindBegun }
	d.records = slices.Concat(d.records[:1], o.records[1:slices.IndexFunc(o.records, begun)],
		d.records[slices.IndexFunc(d.records, begun):])
}

// A beginning whose ledger was changed is not what sites have signed of it; if nobody has signed it, what they signed
// later tells.
func TestAlteredBeginningIsFound(t *testing.T) {
	for name, signed := range map[string]bool{"signed": true, "unsigned": false} {
		t.Run(name, func(t *testing.T) {
			f, other := late(t, 700, signed), late(t, 300, signed)
			d, o := f.parse(f.export(0, 0)), other.parse(other.export(0, 0))
			r := f.verify(d.write(t), replay.Options{})
			if r.Difference != nil || r.Begin.Entry == 0 || len(r.Begin.SignedBy) > 0 != signed {
				t.Fatalf("as it was: %+v, %+v", r.Difference, r.Begin)
			}
			d.giveState(o)
			forged := f.verify(d.write(t), replay.Options{})
			if x := forged.Difference; x == nil || x.Kind != replay.State || x.Site == "" ||
				(x.Entry == r.Begin.Entry) != signed {
				t.Errorf("%+v, begins with %d", x, r.Begin.Entry)
			}
		})
	}
}

// statements returns where those of a site stand, and what they say.
func (d *document) statements(t testing.TB, site string) (at []int, said []compare.Statement) {
	t.Helper()
	for i, rec := range d.records {
		if rec.Kind != history.KindStatement {
			continue
		}
		_, s, err := history.ParseStatement(rec.Contents)
		if err != nil {
			t.Fatal(err)
		}
		if s.Site == site {
			at, said = append(at, i), append(said, s)
		}
	}
	return at, said
}

// A statement that its site has not signed is one, and so is one that it has signed of another history.
func TestForgedStatementsAreNamed(t *testing.T) {
	f := played(t)
	whole := f.export(0, 0)
	for name, by := range map[string]string{"by another key": "site-3", "by its own key": "site-2"} {
		d := f.parse(whole)
		at, said := d.statements(t, "site-2")
		s := said[1]
		s.Chain[0]++
		s.Sign(f.group(), keyOf(by).Sign)
		d.records[at[1]].Contents = append(slices.Clone(f.id[:]), s.Append(nil)...)
		want := map[string]string{"site-3": replay.Statement, "site-2": replay.History}[by]
		r := f.verify(d.write(t), replay.Options{})
		x := r.Difference
		if by == "site-2" { // others agree with what stands here
			x = dissent(r)
		}
		if x == nil || x.Kind != want || x.Entry != s.Entry || x.Site != "site-2" {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// dissent returns what a site has signed otherwise than others; nil if there is not just one, or something differs.
func dissent(r *replay.Report) *replay.Difference {
	if r.Difference != nil || len(r.Dissent) != 1 {
		return nil
	}
	return &r.Dissent[0]
}

// What a site has told somebody else is compared, too: its own file, or a statement from elsewhere.
func TestStatementsFromElsewhere(t *testing.T) {
	f := played(t)
	_, said := f.parse(f.export(0, 0)).statements(t, "site-3")
	s := said[len(said)-1]
	o := replay.Options{Statements: []replay.Signed{{Statement: s, Lineage: f.id}}}
	if r := f.verify(f.dir, o); r.Difference != nil {
		t.Errorf("the same: %v", r.Difference)
	}
	s.Hash[0]++
	s.Sign(f.group(), keyOf("site-3").Sign)
	o.Statements[0].Statement = s
	x := dissent(f.verify(f.dir, o))
	if x == nil || x.Kind != replay.State || x.Entry != s.Entry || x.Site != "site-3" {
		t.Errorf("another one: %+v", x)
	}
	s.Entry = 1 << 40
	s.Sign(f.group(), keyOf("site-3").Sign)
	o.Statements[0].Statement = s
	if r := f.verify(f.dir, o); r.Difference != nil || r.Elsewhere != 1 {
		t.Errorf("of an entry that is not here: %v, %d", r.Difference, r.Elsewhere)
	}
}

// Keys that sites have told by another way are compared.
func TestKeysAreCompared(t *testing.T) {
	f := played(t)
	r := f.verify(f.dir, replay.Options{Keys: map[string]identity.Public{"site-2": keyOf("site-2").Public()}})
	if r.Difference != nil || !r.Members[1].Checked || r.Members[0].Checked {
		t.Errorf("%v, %+v", r.Difference, r.Members)
	}
	for site, has := range map[string]string{"site-2": "has the key", "site-9": "is no member"} {
		r = f.verify(f.dir, replay.Options{Keys: map[string]identity.Public{site: keyOf("another").Public()}})
		if x := r.Difference; x == nil || x.Kind != replay.Key || x.Site != site || !strings.Contains(x.What, has) {
			t.Errorf("%s: %+v", site, x)
		}
	}
}

// A site that replaces its key signs by the next one what it has applied before.
func TestStatementsAcrossAKeyChange(t *testing.T) {
	f := newFederation(t, 64<<20)
	f.silent["site-2"] = true
	f.idle(45)
	f.rekey("site-2", "next of site-2")
	for _, p := range f.points {
		f.say("site-2", p)
	}
	f.close()
	r := f.verify(f.dir, replay.Options{})
	if r.Difference != nil || r.Statements != 3 {
		t.Errorf("%v, %d statements", r.Difference, r.Statements)
	}
}
