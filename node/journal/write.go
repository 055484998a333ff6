package journal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/cloudshare/cloudshare/node/boltfile"
)

// directBytes is what is worth a commit of bbolt's own: to write it twice would cost
// more than the second sync.
const directBytes = 64 << 10

// Write is one change; without a value it deletes.
type Write struct {
	Bucket     Bucket
	Key, Value []byte
	// Record, if set, is encoded to the value, as JSON, by Commit; nothing that it holds
	// may change before.
	Record any
	// Merge, if set, makes the value from the present one, which is nil if there is none.
	Merge func(present []byte) []byte
	// Lazy marks a write that only tidies up: a crash that undoes it does no harm. Commit
	// makes no difference; its caller may let it wait for the next others.
	Lazy bool
}

// Put returns a write of a value.
func Put(b Bucket, key, value []byte) Write { return Write{Bucket: b, Key: key, Value: value} }

// Delete returns a deletion.
func Delete(b Bucket, key []byte) Write { return Write{Bucket: b, Key: key} }

// change is a write whose value is made; nil deletes.
type change struct {
	place
	value []byte
}

// Commit makes all writes durable, in order and together. After an error no other
// write succeeds: what the files hold is known after the next Open.
func (j *Journal) Commit(writes []Write) error {
	if err := j.exclusively(func() error { return j.add(writes) }); err != nil {
		return fmt.Errorf("sync %s: %w", j.path, err)
	}
	return nil
}

// add commits. REQUIRES: j.writing held.
func (j *Journal) add(writes []Write) error {
	changes, err := j.evaluate(writes)
	if err != nil {
		return err
	}
	j.buf = appendChanges(j.buf[:0], changes)
	if len(j.buf) >= directBytes || !j.wal.Fits(len(j.buf)) {
		return j.flush(false, func(tx *bolt.Tx) error { return j.putAll(tx, changes) })
	}
	if err = j.wal.Append(j.buf); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range changes {
		j.newest[c.place] = slices.Clone(c.value) // its maker may use it again
	}
	return nil
}

// evaluate makes the values. REQUIRES: j.writing held.
func (j *Journal) evaluate(writes []Write) ([]change, error) {
	changes := make([]change, 0, len(writes))
	for _, w := range writes {
		at := place{w.Bucket, string(w.Key)}
		if w.Merge != nil {
			present, err := j.latest(at, changes)
			if err != nil {
				return nil, err
			}
			w.Value = w.Merge(present)
		}
		if w.Record != nil {
			v, err := json.Marshal(w.Record)
			if err != nil {
				return nil, fmt.Errorf("encode a record of %s: %w", j.buckets[w.Bucket], err)
			}
			w.Value = v
		}
		changes = append(changes, change{at, w.Value})
	}
	return changes, nil
}

// latest returns a value as it will be behind changes that are not made yet.
//
// REQUIRES: j.writing held.
func (j *Journal) latest(at place, changes []change) ([]byte, error) {
	for _, c := range slices.Backward(changes) {
		if c.place == at {
			return c.value, nil
		}
	}
	return j.get(at)
}

// DeleteRange deletes the keys from first to last, both included, durably.
func (j *Journal) DeleteRange(b Bucket, first, last []byte) error {
	err := j.exclusively(func() error {
		return j.flush(false, func(tx *bolt.Tx) error { return deleteRange(tx.Bucket(j.buckets[b]), first, last) })
	})
	if err != nil {
		return fmt.Errorf("delete from %s: %w", j.path, err)
	}
	return nil
}

func deleteRange(b *bolt.Bucket, first, last []byte) error {
	c := b.Cursor()
	// Sought from the key that was there, not from the first: a search passes over all
	// pages that were emptied from there on.
	for k, _ := c.Seek(first); k != nil && string(k) <= string(last); k, _ = c.Seek(k) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// flush has bbolt take what stands in the write-ahead file, and then what more does.
// Both are one commit, with the generation: what more did is newer than the file, and
// is not undone by it after a crash. With note the generation is noted even if there
// is nothing.
//
// REQUIRES: j.writing held, or j not shared yet.
func (j *Journal) flush(note bool, more func(*bolt.Tx) error) error {
	held := j.wal.Held()
	if !j.wal.Empty() {
		note, held = true, j.wal.Generation()
	}
	if !note && more == nil {
		return nil
	}
	err := j.update(func(tx *bolt.Tx) error {
		if err := j.putAll(tx, j.walChanges(note, held)); err != nil || more == nil {
			return err
		}
		return more(tx)
	})
	if err != nil || j.wal.Empty() {
		return err
	}
	j.mu.Lock()
	clear(j.newest)
	j.mu.Unlock()
	if j.betweenWrites != nil {
		j.betweenWrites()
	}
	return j.wal.Reset()
}

// walChanges returns what stands in the write-ahead file, in any order, and, with note, the
// generation. REQUIRES: as for flush.
func (j *Journal) walChanges(note bool, generation uint64) []change {
	changes := make([]change, 0, len(j.newest)+1)
	for at, v := range j.newest {
		changes = append(changes, change{at, v})
	}
	if note {
		changes = append(changes, change{
			place{0, string(keyGeneration)},
			binary.BigEndian.AppendUint64(nil, generation),
		})
	}
	return changes
}

// exclusively calls f while no other writes, and is visible to Stalled while it
// lasts. Behind a write that failed there are no others.
func (j *Journal) exclusively(f func() error) error {
	j.pending.Add(1)
	defer j.pending.Add(-1)
	at := time.Now()
	j.began.CompareAndSwap(nil, &at)
	defer j.began.CompareAndSwap(&at, nil)
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.broken != nil {
		return j.broken
	}
	j.began.Store(&at)
	j.broken = f()
	return j.broken
}

// update returns bbolt's, with its panics as errors.
func (j *Journal) update(f func(*bolt.Tx) error) error {
	return boltfile.Guard(j.path, func() error { return j.db.Update(f) })
}

func (j *Journal) putAll(tx *bolt.Tx, changes []change) error {
	for _, c := range changes {
		if err := j.putOne(tx, c); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) putOne(tx *bolt.Tx, c change) error {
	name := j.buckets[c.bucket]
	b := tx.Bucket(name)
	if c.value == nil {
		if err := b.Delete([]byte(c.key)); err != nil {
			return fmt.Errorf("delete from %s: %w", name, err)
		}
		return nil
	}
	if err := b.Put([]byte(c.key), c.value); err != nil {
		return fmt.Errorf("put to %s: %w", name, err)
	}
	return nil
}
