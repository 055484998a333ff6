package store

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
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
	for _, name := range []string{"raft.db", "raft.wal"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestStoreAgainstModel: appends of all sizes, both kinds of deletion, crashes and
// restarts leave what a plain list has.
func TestStoreAgainstModel(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		m := storeModel{dir: folder(rt, root), first: 1}
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

// storeModel is a store beside what it should hold: first, first+1 …
type storeModel struct {
	dir   string
	d     Disk
	first uint64
	logs  []*raft.Log
	term  uint64
}

func (m *storeModel) open(rt *rapid.T) {
	var err error
	if m.d, err = openLogStore(m.dir, 64<<10); err != nil {
		rt.Fatal(err)
	}
}

func (m *storeModel) append(rt *rapid.T) {
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
// another leader's follow.
func (m *storeModel) remove(rt *rapid.T, front bool) {
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

func (m *storeModel) check(rt *rapid.T) {
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
