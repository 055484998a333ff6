package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node/walfile"
)

// dontSync leaves the journal to the kernel: for tests whose crashes keep what was
// written.
func (j *Journal) dontSync() { j.db.NoSync, j.front.wal.NoSync = true, true }

// copyJournal puts what the files of an open journal hold now into a directory.
func copyJournal(t interface{ Fatal(...any) }, j *Journal, from, to string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range []string{"journal.db", "journal.wal"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// journalModel is a journal beside a plain map of what it should hold.
type journalModel struct {
	dir  string
	j    *Journal
	want map[place][]byte
}

func (m *journalModel) open(rt *rapid.T) {
	j, err := openJournal(m.dir, 8<<10)
	if err != nil {
		rt.Fatal(err)
	}
	j.dontSync()
	m.j = j
}

// folder is a new one; there is one for every crash.
func folder(rt *rapid.T, root string) string {
	dir, err := os.MkdirTemp(root, "")
	if err != nil {
		rt.Fatal(err)
	}
	return dir
}

// TestJournalAgainstModel: whatever is put, deleted and merged, in groups of all
// sizes, is there after crashes and restarts, and nothing else.
func TestJournalAgainstModel(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		m := &journalModel{dir: folder(rt, root), want: map[place][]byte{}}
		m.open(rt)
		defer func() { _ = m.j.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"commit": m.commit,
			"crash": func(rt *rapid.T) {
				next := folder(rt, root)
				copyJournal(rt, m.j, m.dir, next)
				_ = m.j.Close()
				m.dir = next
				m.open(rt)
			},
			"restart": func(rt *rapid.T) {
				if err := m.j.Close(); err != nil {
					rt.Fatal(err)
				}
				m.open(rt)
			},
			"read": m.check,
		})
		m.check(rt)
	})
}

func (m *journalModel) commit(rt *rapid.T) {
	buckets := [][]byte{bucketAttempts, bucketHome}
	var writes []write
	for range rapid.IntRange(1, 5).Draw(rt, "writes") {
		b := rapid.SampledFrom(buckets).Draw(rt, "bucket")
		key := number(rapid.Uint64Range(0, 7).Draw(rt, "key"))
		at := place{bucketNumber(b), string(key)}
		value := bytes.Repeat([]byte("v"), rapid.SampledFrom([]int{1, 50, 3_000, 70_000}).Draw(rt, "bytes"))
		switch rapid.IntRange(0, 3).Draw(rt, "kind") {
		case 0:
			writes = append(writes, tidy(b, key))
			delete(m.want, at)
		case 1:
			grown := func(old []byte) []byte { return binary.BigEndian.AppendUint32(nil, uint32(len(old))) }
			m.want[at] = grown(m.want[at])
			writes = append(writes, write{bucket: b, key: key, merge: grown})
		default:
			writes = append(writes, put(b, key, value))
			m.want[at] = value
		}
	}
	if err := m.j.commit(writes); err != nil {
		rt.Fatal(err)
	}
}

func (m *journalModel) check(rt *rapid.T) {
	got := map[place][]byte{}
	for _, b := range [][]byte{bucketAttempts, bucketHome} {
		for at, v := range m.want {
			if n := bucketNumber(b); at.bucket == n && !bytes.Equal(m.j.get(b, []byte(at.key)), v) {
				rt.Fatalf("%s %x is not what was put", b, at.key)
			}
		}
		err := m.j.each(b, func(k, v []byte) error {
			got[place{bucketNumber(b), string(k)}] = slices.Clone(v)
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
	}
	if !maps.EqualFunc(got, m.want, bytes.Equal) {
		rt.Fatalf("it holds %d records, want %d", len(got), len(m.want))
	}
}

// TestJournalOfBefore: data of a version without the write-ahead file are taken
// over; without a file that was there, the newest records are gone: an error.
func TestJournalOfBefore(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = j.update(func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(bucketMeta).Put([]byte("old"), []byte("1")), tx.Bucket(bucketMeta).Delete(keyGeneration))
	})
	if err = errors.Join(err, j.Close(), os.Remove(filepath.Join(dir, "journal.wal"))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if j, err = OpenJournal(dir); err != nil {
			t.Fatal(err)
		}
		if got := j.get(bucketMeta, []byte("old")); string(got) != "1" {
			t.Errorf("%q", got)
		}
		if err = j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err = os.Remove(filepath.Join(dir, "journal.wal")); err != nil {
		t.Fatal(err)
	}
	if _, err = OpenJournal(dir); !errors.Is(err, walfile.ErrDamaged) {
		t.Errorf("without its newest records: %v", err)
	}
}

func FuzzReplayRecord(f *testing.F) {
	f.Add(appendChanges(nil, []change{{place{1, "k"}, []byte("v")}, {place{2, "k"}, nil}}))
	f.Fuzz(func(_ *testing.T, b []byte) {
		fr := front{newest: map[place][]byte{}}
		_ = fr.replay(b)
	})
}

// TestJournalStoppedBehindACommit: a broker that was killed when bbolt had the
// changes, and the write-ahead file was not made void yet, finds the commit whole:
// what the file holds is older than what came behind it.
func TestJournalStoppedBehindACommit(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	j, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	one, two := number(1), number(2)
	if err = j.commit([]write{put(bucketTasks, one, []byte("waits"))}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "journal.wal"))
	if err == nil {
		err = j.commit([]write{remove(bucketTasks, one), put(bucketRows, two, make([]byte, journalDirectBytes))})
	}
	if err != nil {
		t.Fatal(err)
	}
	copyJournal(t, j, dir, killed)
	if err = os.WriteFile(filepath.Join(killed, "journal.wal"), before, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := OpenJournal(killed)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if task, row := again.get(bucketTasks, one), again.get(bucketRows, two); task != nil || row == nil {
		t.Errorf("half a commit: the task that was removed is %q, the row that was put has %d bytes", task, len(row))
	}
}

// TestJournalFailsForGood: behind a write that failed nothing is acknowledged: what
// a restart finds is not known.
func TestJournalFailsForGood(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	small := []write{put(bucketTasks, number(1), []byte("t"))}
	large := []write{put(bucketTasks, number(2), make([]byte, journalDirectBytes))}
	if err = errors.Join(j.commit(small), j.front.wal.Close()); err != nil {
		t.Fatal(err)
	}
	first := j.commit(large)
	for what, err := range map[string]error{
		"first": first, "small": j.commit(small), "large": j.commit(large), "update": j.update(func(*bolt.Tx) error { return nil }),
	} {
		if err == nil {
			t.Errorf("%s: a write behind a failed one was acknowledged", what)
		}
	}
	_ = j.Close() // says what failed
	if j, err = OpenJournal(dir); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	if got := j.get(bucketTasks, number(1)); string(got) != "t" {
		t.Errorf("what was acknowledged is %q", got)
	}
}
