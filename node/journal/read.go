package journal

import (
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/cloudshare/cloudshare/node/boltfile"
)

// hangLimit is how long Close waits for the disk.
const hangLimit = 30 * time.Second

// Get returns a copy of one value, nil if there is none. It waits for no write.
func (j *Journal) Get(b Bucket, key []byte) ([]byte, error) {
	v, err := j.get(place{b, string(key)})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", j.path, err)
	}
	return v, nil
}

func (j *Journal) get(at place) ([]byte, error) {
	j.mu.RLock()
	v, ok := j.newest[at]
	j.mu.RUnlock()
	if ok {
		return slices.Clone(v), nil
	}
	return j.getBolt(at)
}

// getBolt returns what bbolt has.
func (j *Journal) getBolt(at place) (v []byte, err error) {
	err = j.view(func(tx *bolt.Tx) error {
		v = slices.Clone(tx.Bucket(j.buckets[at.bucket]).Get([]byte(at.key)))
		return nil
	})
	return v, err
}

// Each calls f for every record of a bucket in the order of keys; neither slice is
// valid behind the call.
func (j *Journal) Each(b Bucket, f func(key, value []byte) error) error {
	return j.viewAll(b, func(b *bolt.Bucket) error { return b.ForEach(f) })
}

// Bounds returns the first and the last key of a bucket, nil if it is empty.
func (j *Journal) Bounds(b Bucket) (first, last []byte, err error) {
	err = j.viewAll(b, func(b *bolt.Bucket) error {
		c := b.Cursor()
		k, _ := c.First()
		first = slices.Clone(k)
		k, _ = c.Last()
		last = slices.Clone(k)
		return nil
	})
	return first, last, err
}

// viewAll calls f with a bucket that holds all changes made by now.
func (j *Journal) viewAll(b Bucket, f func(*bolt.Bucket) error) error {
	err := j.exclusively(func() error { return j.flush(false, nil) })
	if err == nil {
		err = j.view(func(tx *bolt.Tx) error { return f(tx.Bucket(j.buckets[b])) })
	}
	if err != nil {
		return fmt.Errorf("read bucket %s of %s: %w", j.buckets[b], j.path, err)
	}
	return nil
}

// view returns bbolt's, with its panics as errors.
func (j *Journal) view(f func(*bolt.Tx) error) error {
	return boltfile.Guard(j.path, func() error { return j.db.View(f) })
}

// Stalled returns an error if a write is under way for longer than a limit, else nil.
func (j *Journal) Stalled(now time.Time, limit time.Duration) error {
	began := j.began.Load()
	if began == nil || now.Sub(*began) <= limit {
		return nil
	}
	return fmt.Errorf("write %s: %w for %s: check the disk, then start the broker again",
		j.path, ErrStalled, now.Sub(*began).Round(time.Second))
}

// Pending returns how many writes are under way or wait for one that is.
func (j *Journal) Pending() int { return int(j.pending.Load()) }

// Close closes the files; it is idempotent. It gives up for a disk that hangs
// (ErrStalled): with a write under way at once, else after 30 s.
func (j *Journal) Close() error { return j.closeWithin(hangLimit) }

func (j *Journal) closeWithin(limit time.Duration) error {
	hangs := fmt.Errorf("close %s: %w: end the process", j.path, ErrStalled)
	if j.Pending() > 0 {
		return hangs
	}
	ended := make(chan error, 1)
	go func() { ended <- j.close() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(limit):
		return hangs
	}
}

// close leaves all changes in bbolt, unless a write has failed.
func (j *Journal) close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	var err error
	if j.broken == nil {
		err = j.flush(false, nil)
		j.broken = errClosed
	}
	if err = errors.Join(err, j.closeFiles()); err != nil {
		return fmt.Errorf("close %s: %w", j.path, err)
	}
	return nil
}

var errClosed = errors.New("it is closed")
