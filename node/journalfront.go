package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/cloudshare/cloudshare/node/walfile"
)

// The journal's newest changes stand in a write-ahead file in front of bbolt
// (package walfile), and here in memory, until bbolt takes them in one commit. Most
// records are deleted before: those of attempts live as long as these.

const (
	// journalWalBytes holds the records of some 3000 attempts; bbolt takes what is
	// left of them in some milliseconds.
	journalWalBytes = 1 << 20
	// journalDirectBytes is what is worth a commit of bbolt's own.
	journalDirectBytes = 64 << 10
)

// keyGeneration notes which generation of the write-ahead file bbolt holds.
var keyGeneration = []byte("wal-generation")

// recordVersion is the first byte of a record of the write-ahead file.
const recordVersion = 1

// place is where a change belongs: the bucket's number in allBuckets (which only
// grows at its end), and the key.
type place struct {
	bucket int
	key    string
}

// front is what bbolt does not have yet. Journal.mu guards it.
type front struct {
	wal *walfile.File
	// newest are the changes in wal, nil = deleted.
	newest map[place][]byte
	buf    []byte
	// broken is the first write that failed, to whichever file: what they hold since
	// is known after a restart, so nothing is written any more.
	broken error
}

// openFront opens the write-ahead file beside the database and has bbolt take
// what stands in it.
func (j *Journal) openFront(dir string, size int64) error {
	noted := decodeNumber(j.getBolt(bucketMeta, keyGeneration))
	path := filepath.Join(dir, "journal.wal")
	wal, records, err := walfile.Open(path, size, noted)
	if err != nil {
		return err
	}
	j.front = front{wal: wal, newest: map[place][]byte{}}
	for i, r := range records {
		if err = j.front.replay(r); err != nil {
			return errors.Join(fmt.Errorf("%s is %w: record %d: %w", path, walfile.ErrDamaged, i, err), wal.Close())
		}
	}
	if err = j.flush(noted == 0, func(*bolt.Tx) error { return nil }); err != nil {
		return errors.Join(err, wal.Close())
	}
	return nil
}

// commit makes all writes durable, in order, with one sync.
func (j *Journal) commit(writes []write) error {
	err := j.exclusively(func() error { return j.add(writes) })
	if err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	return nil
}

// add is commit. REQUIRES: j.mu held.
func (j *Journal) add(writes []write) error {
	changes := make([]change, 0, len(writes))
	for _, w := range writes {
		at := place{bucketNumber(w.bucket), string(w.key)}
		if w.merge != nil {
			w.value = w.merge(j.latest(at, changes))
		}
		if w.record != nil {
			w.value = record(w.record)
		}
		changes = append(changes, change{at, w.value})
	}
	f := &j.front
	f.buf = appendChanges(f.buf[:0], changes)
	if len(f.buf) >= journalDirectBytes || !f.wal.Fits(len(f.buf)) {
		return j.flush(false, func(tx *bolt.Tx) error { return putAll(tx, changes) })
	}
	if err := f.wal.Append(f.buf); err != nil {
		return err
	}
	for _, c := range changes {
		f.newest[c.place] = slices.Clone(c.value) // its maker may use it again
	}
	return nil
}

// latest is look behind changes that are not made yet.
//
// REQUIRES: j.mu held.
func (j *Journal) latest(at place, changes []change) []byte {
	for _, c := range slices.Backward(changes) {
		if c.place == at {
			return c.value
		}
	}
	return j.look(at)
}

// flush has bbolt take what stands in the file, and then what more does. Both are
// one commit, with the generation: what more did is newer than the file, and is not
// undone by it after a crash. With note the generation is noted even if there is
// nothing.
//
// REQUIRES: j.mu held, or j not shared yet.
func (j *Journal) flush(note bool, more func(*bolt.Tx) error) error {
	f := &j.front
	held := f.wal.Held()
	if !f.wal.Empty() {
		note, held = true, f.wal.Generation()
	}
	err := j.db.Update(func(tx *bolt.Tx) error {
		for at, v := range f.newest {
			if err := putOne(tx, at, v); err != nil {
				return err
			}
		}
		if note {
			if err := tx.Bucket(bucketMeta).Put(keyGeneration, number(held)); err != nil {
				return fmt.Errorf("note generation: %w", err)
			}
		}
		return more(tx)
	})
	if err != nil || f.wal.Empty() {
		return err
	}
	clear(f.newest)
	return f.wal.Reset()
}

// look returns the newest value of a place, nil if there is none.
//
// REQUIRES: j.mu held.
func (j *Journal) look(at place) []byte {
	if v, ok := j.front.newest[at]; ok {
		return v
	}
	return j.getBolt(allBuckets[at.bucket], []byte(at.key))
}

// exclusively calls f while no other writes, and can be seen from outside while
// it lasts. Writes wait for each other: the one that has the file is the one noted.
// Behind one that failed there are no others.
func (j *Journal) exclusively(f func() error) error {
	at := time.Now()
	j.began.CompareAndSwap(nil, &at)
	defer j.began.CompareAndSwap(&at, nil)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.front.broken != nil {
		return j.front.broken
	}
	j.began.Store(&at)
	j.front.broken = f()
	return j.front.broken
}

// update changes bbolt itself, behind all that was committed before.
func (j *Journal) update(f func(*bolt.Tx) error) error {
	return j.exclusively(func() error { return j.flush(false, f) })
}

// change is one write whose value is made; nil deletes.
type change struct {
	place
	value []byte
}

func putAll(tx *bolt.Tx, changes []change) error {
	for _, c := range changes {
		if err := putOne(tx, c.place, c.value); err != nil {
			return err
		}
	}
	return nil
}

func putOne(tx *bolt.Tx, at place, value []byte) error {
	name := allBuckets[at.bucket]
	b := tx.Bucket(name)
	if value == nil {
		if err := b.Delete([]byte(at.key)); err != nil {
			return fmt.Errorf("delete from %s: %w", name, err)
		}
		return nil
	}
	if err := b.Put([]byte(at.key), value); err != nil {
		return fmt.Errorf("put to %s: %w", name, err)
	}
	return nil
}

// bucketNumber is a bucket's place in allBuckets; the writes name no others.
func bucketNumber(name []byte) int {
	for i := range allBuckets {
		if &allBuckets[i][0] == &name[0] {
			return i
		}
	}
	panic(fmt.Sprintf("the journal has no bucket %s", name))
}

// A record of the file is a version and the changes of one sync:
//
//	u8 version · n × (bucket · length · key · length of value + 1, 0 = delete · value)
func appendChanges(dst []byte, changes []change) []byte {
	dst = append(dst, recordVersion)
	for _, c := range changes {
		dst = binary.AppendUvarint(dst, uint64(c.bucket))
		dst = binary.AppendUvarint(dst, uint64(len(c.key)))
		dst = append(dst, c.key...)
		if c.value == nil {
			dst = append(dst, 0)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(c.value))+1)
		dst = append(dst, c.value...)
	}
	return dst
}

// errRecord: a record of the write-ahead file that this version did not write.
var errRecord = errors.New("it does not read")

// replay takes over a record; values point into it.
func (f *front) replay(b []byte) error {
	if len(b) == 0 || b[0] != recordVersion {
		return errRecord
	}
	for b = b[1:]; len(b) > 0; {
		var head [2]uint64
		for i := range head {
			v, n := binary.Uvarint(b)
			if n <= 0 {
				return errRecord
			}
			head[i], b = v, b[n:]
		}
		if head[0] >= uint64(len(allBuckets)) || head[1] > uint64(len(b)) {
			return errRecord
		}
		at := place{int(head[0]), string(b[:head[1]])}
		b = b[head[1]:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n)+1 {
			return errRecord
		}
		b = b[n:]
		if size == 0 {
			f.newest[at] = nil
			continue
		}
		f.newest[at], b = b[:size-1:size-1], b[size-1:]
	}
	return nil
}
