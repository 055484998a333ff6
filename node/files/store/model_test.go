package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node/files"
)

// The model's spaces have four and a half, or so, of the blobs that there are.
const (
	modelMax  = 9 * block
	modelKeep = 30 * time.Minute
)

var modelPlaces = []Place{own, {Own, "user"}, cached, {Cache, "site-3"}, out}

// modelContents have one block to four, and the last two several pieces.
var modelContents = []string{
	"", "a", text("b", block), text("c", block+1), text("d", 3*block), text("e", 2*shortPiece+1), text("f", 4*block),
}

// modelBlob is what the model knows of a blob, whole or in the making.
type modelBlob struct {
	used    time.Time
	readers []*Reader
	filler  *Partial // holds it
	pieces  map[int]bool
	dirty   bool // its file is newer than used
}

// model is a store beside plain maps of what it should have.
type model struct {
	*rig
	blobs map[slot]*modelBlob
	pins  map[string]map[Space]Ref // one for each space, so that no two are used at one time
	// sizes are of pinned blobs with room reserved, expected what was reserved by name.
	sizes    map[key]int64
	expected map[string]expectation
}

// TestStoreAgainstModel: whatever is put, filled, read, pinned and collected, with crashes between, is there and goes
// as plain maps say.
func TestStoreAgainstModel(t *testing.T) {
	root, plays := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		plays++
		dir := filepath.Join(root, strconv.Itoa(plays))
		if err := os.Mkdir(dir, 0o700); err != nil {
			rt.Fatal(err)
		}
		limits := limitsOf(Limit{modelMax, modelKeep}, Limit{modelMax, 0}, Limit{modelMax, modelKeep})
		m := &model{rig: newRig(rt, dir, limits).withPieces(shortPiece)}
		m.blobs, m.pins = map[slot]*modelBlob{}, map[string]map[Space]Ref{}
		m.sizes, m.expected = map[key]int64{}, map[string]expectation{}
		defer func() { m.letGo(); _ = m.Close() }()
		actions := map[string]func(*rapid.T){"": m.check}
		for name, f := range map[string]func(*rapid.T){
			"put": m.putOne, "begin": m.beginOne, "fill": m.fillOne, "end": m.endOne, "open": m.openOne, "read": m.readOne,
			"pin": m.pinOne, "unpin": m.unpinOne, "missing": m.missingOne, "collect": m.collectAll, "kill": m.kill,
			"reserve": m.reserveOne, "expect": m.expectOne, "keep": m.keepOne, "release": m.releaseOne,
		} {
			actions[name] = func(rt *rapid.T) {
				m.clock = m.clock.Add(time.Minute)
				f(rt)
			}
		}
		rt.Repeat(actions)
	})
}

func drawRef(rt *rapid.T) (at Place, content string, whole slot) {
	at = rapid.SampledFrom(modelPlaces).Draw(rt, "place")
	content = modelContents[rapid.IntRange(0, len(modelContents)-1).Draw(rt, "content")]
	return at, content, slot{key: ref(at, content)}
}

func sizeOf(at slot) int64 {
	i := slices.IndexFunc(modelContents, func(c string) bool { return files.HashOf([]byte(c)) == at.Hash })
	return int64(len(modelContents[i]))
}

func (m *model) bytes(space Space) (sum int64) {
	for at := range m.blobs {
		if at.Space == space {
			sum += charge(sizeOf(at))
		}
	}
	return sum
}

// idle returns the slots of a space that may go, the least recently used first.
func (m *model) idle(space Space) (list []slot) {
	for at, b := range m.blobs {
		pinned := false
		for _, of := range m.pins {
			pinned = pinned || of[space] == at.key
		}
		if at.Space == space && !pinned && len(b.readers) == 0 && b.filler == nil {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(a, b slot) int { return m.blobs[a].used.Compare(m.blobs[b].used) })
	return list
}

// reserve reports whether there is room, and makes it.
func (m *model) reserve(space Space, n int64) bool {
	idle := m.idle(space)
	room := modelMax - m.bytes(space)
	for _, at := range idle {
		if space == Cache {
			room += charge(sizeOf(at))
		}
	}
	if n > room {
		return false
	}
	for space == Cache && m.bytes(space)+n > modelMax {
		delete(m.blobs, idle[0])
		idle = idle[1:]
	}
	return true
}

func (m *model) putOne(rt *rapid.T) {
	at, content, whole := drawRef(rt)
	_, err := m.Put(context.Background(), at, strings.NewReader(content), files.MaxFile)
	there := m.blobs[whole] != nil // it is short, and so needs no room
	if !there && !m.reserve(at.Space, charge(int64(len(content)))) {
		if !errors.Is(err, ErrFull) {
			rt.Fatalf("put into a full space: %v", err)
		}
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	m.isWhole(whole)
}

func (m *model) isWhole(whole slot) {
	if m.blobs[whole] == nil {
		m.blobs[whole] = &modelBlob{}
	}
	m.blobs[whole].used = m.clock
}

func (m *model) beginOne(rt *rapid.T) {
	at, content, whole := drawRef(rt)
	part := slot{whole.key, true}
	p, err := m.Begin(at, files.BlobOf([]byte(content)))
	b := m.blobs[part]
	switch {
	case m.blobs[whole] != nil:
		if err != nil || len(p.Missing()) != 0 || p.Finish() != nil || p.Close() != nil {
			rt.Fatalf("it is there: %v", err)
		}
		m.blobs[whole].used = m.clock
		return
	case b != nil && b.filler != nil:
		if !errors.Is(err, ErrBusy) {
			rt.Fatalf("it is being filled: %v", err)
		}
		return
	case b == nil && !m.reserve(at.Space, charge(int64(len(content)))):
		if !errors.Is(err, ErrFull) {
			rt.Fatalf("begun in a full space: %v", err)
		}
		return
	case err != nil:
		rt.Fatal(err)
	case b == nil:
		b = &modelBlob{used: m.clock, pieces: map[int]bool{}, dirty: true}
		m.blobs[part] = b
	}
	b.filler = p
	m.checkPieces(rt, b)
}

func (m *model) checkPieces(rt *rapid.T, b *modelBlob) {
	var missing []int
	for i := range b.filler.Pieces() {
		if !b.pieces[i] {
			missing = append(missing, i)
		}
	}
	if got := b.filler.Missing(); !slices.Equal(got, missing) {
		rt.Fatalf("missing %v, want %v", got, missing)
	}
}

// filled draws a blob that is being filled, nil if there is none.
func (m *model) filled(rt *rapid.T) (slot, *modelBlob) {
	var list []slot
	for at, b := range m.blobs {
		if b.filler != nil {
			list = append(list, at)
		}
	}
	if len(list) == 0 {
		return slot{}, nil
	}
	slices.SortFunc(list, func(a, b slot) int { return strings.Compare(a.String(), b.String()) })
	at := rapid.SampledFrom(list).Draw(rt, "partial")
	return at, m.blobs[at]
}

func contentOf(at slot) string {
	i := slices.IndexFunc(modelContents, func(c string) bool { return files.HashOf([]byte(c)) == at.Hash })
	return modelContents[i]
}

func (m *model) fillOne(rt *rapid.T) {
	at, b := m.filled(rt)
	if b == nil || b.filler.Pieces() == 0 {
		return
	}
	i := rapid.IntRange(0, b.filler.Pieces()-1).Draw(rt, "piece")
	if err := b.filler.WritePiece(i, m.pieceOf(contentOf(at), i)); err != nil {
		rt.Fatal(err)
	}
	b.pieces[i] = true
	b.dirty = true
	m.checkPieces(rt, b)
}

func (m *model) endOne(rt *rapid.T) {
	at, b := m.filled(rt)
	if b == nil {
		return
	}
	p := b.filler
	switch rapid.SampledFrom([]string{"finish", "finish", "close", "abandon"}).Draw(rt, "how") {
	case "finish":
		err := p.Finish()
		if len(b.pieces) < p.Pieces() {
			if !errors.Is(err, ErrIncomplete) {
				rt.Fatalf("pieces are missing: %v", err)
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		delete(m.blobs, at)
		m.isWhole(slot{key: at.key})
	case "close":
		if err := p.Close(); err != nil {
			rt.Fatal(err)
		}
		b.filler = nil
		b.used = m.clock
		b.dirty = false
		if p.Pieces() < 2 {
			delete(m.blobs, at)
		}
	default:
		if err := p.Abandon(); err != nil {
			rt.Fatal(err)
		}
		delete(m.blobs, at)
	}
}

func (m *model) openOne(rt *rapid.T) {
	at, _, whole := drawRef(rt)
	r, err := m.Open(at, whole.Hash)
	b := m.blobs[whole]
	if b == nil {
		if !errors.Is(err, ErrUnknown) {
			rt.Fatalf("it is not there: %v", err)
		}
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	b.readers = append(b.readers, r)
	if at.Space == Cache {
		b.used = m.clock
	}
}

// readOne reads a blob that is open, and closes it.
func (m *model) readOne(rt *rapid.T) {
	_, content, whole := drawRef(rt)
	b := m.blobs[whole]
	if b == nil || len(b.readers) == 0 {
		return
	}
	got, err := io.ReadAll(b.readers[0])
	if err = errors.Join(err, b.readers[0].Close()); err != nil || string(got) != content {
		rt.Fatalf("read %.20q: %v", got, err)
	}
	b.readers = b.readers[1:]
}

func (m *model) pinOne(rt *rapid.T) {
	at, _, whole := drawRef(rt)
	by := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "by")
	if m.pins[by] == nil {
		m.pins[by] = map[Space]Ref{}
	}
	if _, other := m.pins[by][at.Space]; other {
		return
	}
	m.pins[by][at.Space] = whole.key
	if missing := m.Pin(by, whole.key, whole.key); (len(missing) == 0) != (m.blobs[whole] != nil) {
		rt.Fatalf("missing: %v", missing)
	}
}

func (m *model) unpinOne(rt *rapid.T) {
	by := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "by")
	m.Unpin(by)
	before := m.pins[by]
	delete(m.pins, by)
	for space, k := range before {
		still := false
		for _, of := range m.pins {
			still = still || of[space] == k
		}
		if !still {
			delete(m.sizes, k)
		}
		if b := m.blobs[slot{key: k}]; b != nil && !still {
			switch space {
			case Cache:
				b.used = m.clock
			case Outgoing:
				b.used = released
			default:
			}
		}
	}
}

func (m *model) missingOne(rt *rapid.T) {
	at, _, whole := drawRef(rt)
	missing := m.Missing(at, whole.Hash)
	b := m.blobs[whole]
	if (len(missing) == 0) != (b != nil) {
		rt.Fatalf("missing: %v", missing)
	}
	if b != nil {
		b.used = m.clock
	}
}

func (m *model) collectAll(rt *rapid.T) {
	m.clock = m.clock.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "minutes")) * time.Minute)
	want := 0
	for _, space := range []Space{Own, Outgoing} {
		for _, at := range m.idle(space) {
			if m.clock.Sub(m.blobs[at].used) >= modelKeep {
				delete(m.blobs, at)
				want++
			}
		}
	}
	if n, more, err := m.Collect(); n != want || more || err != nil {
		rt.Fatalf("%d removed, %t, %v; want %d", n, more, err, want)
	}
}

// letGo closes what a killed process has open, without the store's doing.
func (m *model) letGo() {
	for at, b := range m.blobs {
		for _, r := range b.readers {
			_ = r.f.Close()
		}
		b.readers = nil
		if b.filler == nil {
			continue
		}
		_ = b.filler.closeFiles()
		if b.filler.Pieces() < 2 {
			delete(m.blobs, at)
		}
		b.filler = nil
	}
}

// loseUnsynced has the disk lose files that were not synced: their names, or what was in them.
func (m *model) loseUnsynced(rt *rapid.T) {
	lose := rapid.SampledFrom([]func(name string) error{
		func(string) error { return nil },
		os.Remove,
		func(name string) error { return os.Truncate(name, 0) },
		func(name string) error { return os.Truncate(name, 4*block) }, // zeros
	}).Draw(rt, "lose")
	m.log.await()
	for k := range m.log.keys {
		if sizeOf(slot{key: k}) == 0 {
			continue
		}
		if err := lose(filepath.Join(m.dir, fileOf(k))); err != nil {
			rt.Fatal(err)
		}
	}
}

// back has the model know of blobs that were removed shortly before a kill, and are there again.
func (m *model) back(rt *rapid.T) {
	for at, e := range m.entries {
		if m.blobs[at] != nil {
			continue
		}
		if at.part || !durable(fileOf(at.key)) || e.holds > 0 {
			rt.Fatalf("%v is there", at)
		}
		m.blobs[at] = &modelBlob{used: e.used}
	}
}

// kill ends the store as kill -9 does, and opens it again with the pins of the journal.
func (m *model) kill(rt *rapid.T) {
	m.letGo()
	for at, b := range m.blobs {
		if b.dirty { // its file's time is the real one: no two are the same here
			m.disk.touch(fileOf(at.key)+partExt, m.clock)
			b.used, b.dirty = m.clock, false
			m.clock = m.clock.Add(time.Second)
		}
	}
	m.loseUnsynced(rt)
	m.reopen()
	m.back(rt)
	missing := m.Repin(func(yield func(string, Ref) bool) {
		for by, of := range m.pins {
			for _, k := range of {
				if !yield(by, k) {
					return
				}
			}
		}
	})
	for _, k := range missing {
		if m.blobs[slot{key: k}] != nil {
			rt.Fatalf("%v is missing", k)
		}
	}
	clear(m.sizes) // of attempts that were staging: they are forgotten
	for by, x := range m.expected {
		m.KeepBytes(by, x.space, x.bytes)
	}
}

// check compares all that there is.
func (m *model) check(rt *rapid.T) {
	for _, space := range []Space{Own, Cache, Outgoing} {
		count := 0
		for at := range m.blobs {
			if at.Space == space {
				count++
			}
		}
		if u := m.Usage(space); u.Bytes != m.bytes(space) || u.Blobs != count {
			rt.Fatalf("%s has %+v, want %d bytes, %d blobs", space, u, m.bytes(space), count)
		}
		if got := m.Promised(space); got != m.promised(space) {
			rt.Fatalf("%d bytes of %s are promised, want %d", got, space, m.promised(space))
		}
	}
	var want []string
	for at, b := range m.blobs {
		switch {
		case !at.part:
			want = append(want, fileOf(at.key))
		case b.filler == nil || b.filler.Pieces() > 1:
			want = append(want, fileOf(at.key)+partExt, fileOf(at.key)+rowsExt)
		default:
			want = append(want, fileOf(at.key)+partExt)
		}
	}
	slices.Sort(want)
	if got := m.names(); !slices.Equal(got, want) {
		rt.Fatalf("files %q, want %q", got, want)
	}
	for at := range maps.Keys(m.blobs) {
		if e := m.entries[at]; e == nil || e.size != sizeOf(at) {
			rt.Fatal(fmt.Sprint(at, " is not in the index"))
		}
	}
}
