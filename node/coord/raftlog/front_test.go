package raftlog

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/walfile"
)

// entry is a log entry of so many bytes.
func entry(index, term uint64, size int) *raft.Log {
	l := &raft.Log{Index: index, Term: term, Data: make([]byte, size), Extensions: []byte{1}}
	if term%2 == 0 {
		l.Type, l.AppendedAt = raft.LogConfiguration, time.Unix(0, int64(index)).Round(0)
	}
	return l
}

// crashed is what a store's files hold at this moment, in a directory of its own.
func crashed(t interface{ Fatal(...any) }, from, to string) {
	for _, name := range []string{"raft.db", walName} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFrontAgainstModel: appends of all sizes, both kinds of deletion, crashes and
// restarts leave what a plain list has.
func TestFrontAgainstModel(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		m := frontModel{dir: folder(rt, root), first: 1}
		m.open(rt)
		defer func() { _ = m.d.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"append": m.append,
			"front":  func(rt *rapid.T) { m.remove(rt, true) },
			"back":   func(rt *rapid.T) { m.remove(rt, false) },
			"crash": func(rt *rapid.T) {
				next := folder(rt, root)
				crashed(rt, m.dir, next)
				_ = m.d.Close()
				m.dir = next
				m.open(rt)
			},
			"restart": func(rt *rapid.T) {
				if err := m.d.Close(); err != nil {
					rt.Fatal(err)
				}
				m.open(rt)
			},
			"": m.check,
		})
	})
}

// folder is a new one; there is one for every crash.
func folder(rt *rapid.T, root string) string {
	dir, err := os.MkdirTemp(root, "")
	if err != nil {
		rt.Fatal(err)
	}
	return dir
}

// frontModel is a store beside what it should hold: first, first+1 …
type frontModel struct {
	dir   string
	d     disk
	first uint64
	logs  []*raft.Log
	term  uint64
}

func (m *frontModel) open(rt *rapid.T) {
	b, err := openBolt(filepath.Join(m.dir, "raft.db"))
	if err != nil {
		rt.Fatal(err)
	}
	if m.d, err = openFront(b, filepath.Join(m.dir, walName), 64<<10); err != nil {
		rt.Fatal(err)
	}
}

func (m *frontModel) append(rt *rapid.T) {
	m.term++
	var logs []*raft.Log
	for range rapid.IntRange(1, 4).Draw(rt, "entries") {
		size := rapid.SampledFrom([]int{0, 10, 300, 9_000, 40_000}).Draw(rt, "bytes")
		logs = append(logs, entry(m.first+uint64(len(m.logs)+len(logs)), m.term, size))
	}
	if err := m.d.StoreLogs(logs); err != nil {
		rt.Fatal(err)
	}
	m.logs = append(m.logs, logs...)
}

// remove drops the oldest entries, as behind a snapshot, or the newest, as when
// another lead's follow.
func (m *frontModel) remove(rt *rapid.T, front bool) {
	if len(m.logs) == 0 {
		return
	}
	n := rapid.IntRange(1, len(m.logs)).Draw(rt, "n")
	end := m.first + uint64(len(m.logs))
	from, to := m.first, m.first+uint64(n)-1
	if !front {
		from, to = end-uint64(n), end-1
	}
	if err := m.d.DeleteRange(from, to); err != nil {
		rt.Fatal(err)
	}
	if front {
		m.logs, m.first = m.logs[n:], m.first+uint64(n)
	} else {
		m.logs = m.logs[:len(m.logs)-n]
	}
}

func (m *frontModel) check(rt *rapid.T) {
	first, err1 := m.d.FirstIndex()
	last, err2 := m.d.LastIndex()
	if err := errors.Join(err1, err2); err != nil {
		rt.Fatal(err)
	}
	if len(m.logs) == 0 {
		if first != 0 || last != 0 {
			rt.Fatalf("an empty log goes from %d to %d", first, last)
		}
		return
	}
	if end := m.first + uint64(len(m.logs)) - 1; first != m.first || last != end {
		rt.Fatalf("it goes from %d to %d, want %d to %d", first, last, m.first, end)
	}
	for _, want := range m.logs {
		var got raft.Log
		if err := m.d.GetLog(want.Index, &got); err != nil {
			rt.Fatal(err)
		}
		got.AppendedAt = got.AppendedAt.Local()
		want := *want
		want.AppendedAt = want.AppendedAt.Local()
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("entry %d: %d bytes of term %d, want %d of %d", want.Index, len(got.Data), got.Term, len(want.Data), want.Term)
		}
	}
}

// TestStoreOfBefore: data of a version without the file are taken over; a file that
// is missing, or of another moment than the rest, is an error that says what to do.
func TestStoreOfBefore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "raft.db")
	b, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(b.StoreLogs([]*raft.Log{entry(1, 1, 10), entry(2, 1, 10)}), b.Close()); err != nil {
		t.Fatal(err)
	}
	older := t.TempDir()
	for n := uint64(3); n < 6; n++ {
		d, err := openStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err = d.StoreLog(entry(n, 1, 10)); err != nil {
			t.Fatal(err)
		}
		if last, err := d.LastIndex(); err != nil || last != n {
			t.Fatalf("last is %d, %v", last, err)
		}
		if n == 3 {
			crashed(t, dir, older)
		}
		if err = d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(older, walName)); err != nil {
		t.Fatal(err)
	}
	if d, err := openStore(older); !errors.Is(err, walfile.ErrDamaged) {
		t.Errorf("without its newest entries: %v, %v", d, err)
	}
	if err := os.Rename(filepath.Join(dir, walName), filepath.Join(older, walName)); err != nil {
		t.Fatal(err)
	}
	if d, err := openStore(older); !errors.Is(err, walfile.ErrDamaged) {
		t.Errorf("with those of another moment: %v, %v", d, err)
	}
}

// TestFrontFailsForGood: behind a write that failed, of whichever file, nothing is
// acknowledged: what a restart finds is not known.
func TestFrontFailsForGood(t *testing.T) {
	for name, hurt := range map[string]func(*fronted, *badDisk){
		"entries":    func(_ *fronted, b *badDisk) { b.logs.Store(true) },
		"generation": func(_ *fronted, b *badDisk) { b.votes.Store(true) },
		"file":       func(f *fronted, _ *badDisk) { _ = f.wal.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b, err := openBolt(filepath.Join(dir, "raft.db"))
			if err != nil {
				t.Fatal(err)
			}
			bad := &badDisk{disk: b}
			f, err := openFront(bad, filepath.Join(dir, walName), 64<<10)
			if err != nil {
				t.Fatal(err)
			}
			if err = f.StoreLog(entry(1, 1, 10)); err != nil {
				t.Fatal(err)
			}
			hurt(f, bad)
			first := f.StoreLog(entry(2, 1, directBytes))
			if first == nil {
				t.Fatal("a failed write was acknowledged")
			}
			bad.logs.Store(false)
			bad.votes.Store(false)
			for what, err := range map[string]error{
				"a small entry": f.StoreLog(entry(2, 2, 10)), "a large one": f.StoreLog(entry(2, 2, directBytes)),
				"a deletion": f.DeleteRange(1, 1), "a term": f.SetUint64([]byte("CurrentTerm"), 2), "a vote": f.Set([]byte("LastVoteCand"), nil),
			} {
				if !errors.Is(err, first) {
					t.Errorf("%s: %v, want %v", what, err, first)
				}
			}
			_ = f.Close() // may say what failed
			d, err := openStore(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			var got raft.Log
			if err = d.GetLog(1, &got); err != nil {
				t.Errorf("what was acknowledged: %v", err)
			}
		})
	}
}

// TestOlderVersionIsKeptOut: before the newest entries stand where an older version
// does not look, the directory is of a version that it refuses.
func TestOlderVersionIsKeptOut(t *testing.T) {
	c := newCluster(t)
	closed(t, c.open(t, "a"))
	dir := filepath.Join(c.dir, "a")
	for what, open := range map[string]func(){
		"a start": func() { closed(t, c.open(t, "a")) },
		"a look": func() {
			if _, err := Inspect(patience(t), c.offline("a", "")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		m, err := loadMember(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Version = 1
		if err = relay.SaveMember(dir, m); err != nil {
			t.Fatal(err)
		}
		open()
		if m, err = loadMember(dir); err != nil || m.Version < 2 {
			t.Errorf("after %s: %+v, %v", what, m, err)
		}
	}
	m := member{Version: memberVersion + 1}
	if err := relay.SaveMember(dir, m); err != nil {
		t.Fatal(err)
	}
	c.openErr(t, "a", ErrIdentity, func(*Config) {}, "run the version that wrote it")
}
