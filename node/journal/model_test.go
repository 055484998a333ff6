package journal

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Buckets of the tests.
const (
	meta Bucket = iota
	jobs
	rows
)

func options(dir string, walBytes int64) Options {
	return Options{Dir: dir, Name: "x", Buckets: []string{"meta", "jobs", "rows"}, WalBytes: walBytes, NoSync: true}
}

// fataler is a test, or one draw of rapid's.
type fataler interface {
	Helper()
	Fatal(...any)
}

func open(t fataler, dir string, walBytes int64) *Journal {
	t.Helper()
	j, err := Open(options(dir, walBytes))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// folder is a new one; there is one for every crash.
func folder(t fataler, root string) string {
	t.Helper()
	dir, err := os.MkdirTemp(root, "")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyFiles puts what a journal's files hold now into another folder, as a crash
// would leave them.
func copyFiles(t fataler, from, to string) {
	t.Helper()
	for _, name := range []string{"x.db", "x.wal"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// model is a journal beside a plain map of what it should hold.
type model struct {
	dir  string
	j    *Journal
	want map[place][]byte
}

// TestJournalAgainstModel: whatever is put, deleted and merged, in groups of all
// sizes, is there after crashes and restarts, and nothing else.
func TestJournalAgainstModel(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{dir: folder(rt, root), want: map[place][]byte{}}
		m.j = open(rt, m.dir, 8<<10)
		defer func() { _ = m.j.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"commit": m.commit,
			"range":  m.deleteRange,
			"crash": func(rt *rapid.T) {
				next := folder(rt, root)
				copyFiles(rt, m.dir, next)
				_ = m.j.Close()
				m.dir, m.j = next, open(rt, next, 8<<10)
			},
			"restart": func(rt *rapid.T) {
				if err := m.j.Close(); err != nil {
					rt.Fatal(err)
				}
				m.j = open(rt, m.dir, 8<<10)
			},
			"read": m.check,
		})
		m.check(rt)
	})
}

// commit changes a few records of two buckets.
func (m *model) commit(rt *rapid.T) {
	var writes []Write
	for range rapid.IntRange(1, 5).Draw(rt, "writes") {
		b := rapid.SampledFrom([]Bucket{jobs, rows}).Draw(rt, "bucket")
		key := binary.BigEndian.AppendUint64(nil, rapid.Uint64Range(0, 7).Draw(rt, "key"))
		at := place{b, string(key)}
		value := bytes.Repeat([]byte("v"), rapid.SampledFrom([]int{0, 1, 50, 3_000, 70_000}).Draw(rt, "bytes"))
		switch rapid.IntRange(0, 3).Draw(rt, "kind") {
		case 0:
			writes = append(writes, Delete(b, key))
			delete(m.want, at)
		case 1:
			grown := func(present []byte) []byte { return binary.BigEndian.AppendUint32(nil, uint32(len(present))) }
			m.want[at] = grown(m.want[at])
			writes = append(writes, Write{Bucket: b, Key: key, Merge: grown})
		default:
			writes = append(writes, Put(b, key, value))
			m.want[at] = value
		}
	}
	if err := m.j.Commit(writes); err != nil {
		rt.Fatal(err)
	}
}

func (m *model) deleteRange(rt *rapid.T) {
	b := rapid.SampledFrom([]Bucket{jobs, rows}).Draw(rt, "bucket")
	ends := []uint64{rapid.Uint64Range(0, 7).Draw(rt, "first"), rapid.Uint64Range(0, 7).Draw(rt, "last")}
	first, last := binary.BigEndian.AppendUint64(nil, ends[0]), binary.BigEndian.AppendUint64(nil, ends[1])
	if err := m.j.DeleteRange(b, first, last); err != nil {
		rt.Fatal(err)
	}
	maps.DeleteFunc(m.want, func(at place, _ []byte) bool {
		return at.bucket == b && at.key >= string(first) && at.key <= string(last)
	})
}

func (m *model) check(rt *rapid.T) {
	for at, v := range m.want {
		got, err := m.j.Get(at.bucket, []byte(at.key))
		if err != nil || got == nil || !bytes.Equal(got, v) {
			rt.Fatalf("%x of bucket %d is not what was put: %v", at.key, at.bucket, err)
		}
	}
	if got := contents(rt, m.j); !maps.EqualFunc(got, m.want, bytes.Equal) {
		rt.Fatalf("it holds %d records, want %d", len(got), len(m.want))
	}
	for _, b := range []Bucket{jobs, rows} {
		first, last, err := m.j.Bounds(b)
		if err != nil {
			rt.Fatal(err)
		}
		var keys []string
		for at := range m.want {
			if at.bucket == b {
				keys = append(keys, at.key)
			}
		}
		if len(keys) == 0 && first == nil && last == nil {
			continue
		}
		if len(keys) == 0 || slices.Min(keys) != string(first) || slices.Max(keys) != string(last) {
			rt.Fatalf("the bounds of bucket %d are %x and %x, of %d keys", b, first, last, len(keys))
		}
	}
}

// contents reads both buckets.
func contents(t fataler, j *Journal) map[place][]byte {
	t.Helper()
	got := map[place][]byte{}
	for _, b := range []Bucket{jobs, rows} {
		err := j.Each(b, func(k, v []byte) error {
			got[place{b, string(k)}] = slices.Clone(v)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return got
}

// TestStoppedAnywhere: a crash between any two writes to the files leaves all changes
// of a call or none.
func TestStoppedAnywhere(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{dir: folder(rt, root), want: map[place][]byte{}}
		m.j = open(rt, m.dir, 8<<10)
		defer func() { _ = m.j.Close() }()
		var crashes []string
		m.j.betweenWrites = func() {
			to := folder(rt, root)
			copyFiles(rt, m.dir, to)
			crashes = append(crashes, to)
		}
		for range rapid.IntRange(1, 6).Draw(rt, "calls") {
			before := maps.Clone(m.want)
			crashes = nil
			if rapid.IntRange(0, 3).Draw(rt, "kind") == 0 {
				m.deleteRange(rt)
			} else {
				m.commit(rt)
			}
			m.j.betweenWrites()
			for _, dir := range crashes {
				after := open(rt, dir, 8<<10)
				got := contents(rt, after)
				_ = after.Close()
				if !maps.EqualFunc(got, before, bytes.Equal) && !maps.EqualFunc(got, m.want, bytes.Equal) {
					rt.Fatal("a crash leaves half a call")
				}
			}
		}
	})
}
