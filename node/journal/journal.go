// Package journal keeps the durable records of one process: keys and values in
// buckets of a bbolt file, with a write-ahead file (package walfile) in front of it.
// All changes of one Commit become durable together, with one sync of half a page.
// The broker's own records and raft's log are journals (steps 1, 3 and 6 of a job's
// way). It knows no broker and no raft.
//
//	j, err := journal.Open(journal.Options{Dir: dir, Name: "journal", Buckets: []string{"meta", "jobs"}})
//	err = j.Commit([]journal.Write{journal.Put(1, key, value)})
package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/cloudshare/cloudshare/node/boltfile"
	"github.com/cloudshare/cloudshare/node/walfile"
)

// Errors of this package.
var (
	// ErrInUse: another process has the file open.
	ErrInUse = errors.New("in use by another process")
	// ErrStalled: a write does not return.
	ErrStalled = errors.New("the disk hangs")
)

// IsDamaged reports whether an error says that a file is not what was written to it.
func IsDamaged(err error) bool {
	return errors.Is(err, boltfile.ErrDamaged) || errors.Is(err, walfile.ErrDamaged)
}

// walBytes is the usual size of the write-ahead file: it holds the records of some
// 3000 attempts, and bbolt takes what is in it in some 10 ms.
const walBytes = 1 << 20

// keyGeneration notes, in the first bucket, which generation of the write-ahead file
// bbolt holds.
var keyGeneration = []byte("wal-generation")

// Bucket is the position of a bucket in Options.Buckets.
type Bucket uint8

// Options of a journal.
type Options struct {
	Dir  string // of both files
	Name string // of both files, without .db and .wal
	// Buckets are the names of the buckets. The list may only grow at its end. The first
	// one holds a record of the journal's own, under the key "wal-generation".
	Buckets []string
	// WalBytes is the size of the write-ahead file, if this call makes it; 0: 1 MiB.
	WalBytes int64
	// NoSync leaves writes to the kernel, for tests whose crashes keep them.
	NoSync bool
}

// Journal is an open journal. It is safe for concurrent use.
//
// Assumption: a sync that returned survives a crash of the machine.
type Journal struct {
	db      *bolt.DB
	path    string // of db
	buckets [][]byte
	began   atomic.Pointer[time.Time] // when the write under way was asked for; nil: there is none
	pending atomic.Int32              // writes under way and those that wait for them

	writing sync.Mutex // held over a write; taken before mu
	wal     *walfile.File
	buf     []byte
	closed  bool
	// betweenWrites, if set, is called before each write to a file but the first of a
	// call: tests look at what a crash would leave.
	betweenWrites func()
	// broken is the first write that failed, to whichever file: what they hold since
	// is known after a restart, so nothing is written any more.
	broken error

	mu sync.RWMutex
	// newest are the changes in wal; a nil value deletes. It changes with writing and mu
	// held, so either is enough to read it. Invariant: bbolt has none of them.
	newest map[place][]byte
}

// place is where a value stands.
type place struct {
	bucket Bucket
	key    string
}

// Open opens or creates a journal. Errors: ErrInUse, and those of IsDamaged.
func Open(o Options) (*Journal, error) {
	j := &Journal{path: filepath.Join(o.Dir, o.Name+".db"), newest: map[place][]byte{}}
	for _, name := range o.Buckets {
		j.buckets = append(j.buckets, []byte(name))
	}
	err := j.openBolt(o.NoSync)
	if err == nil {
		err = j.openWal(o)
	}
	if err == nil {
		return j, nil
	}
	err = errors.Join(err, j.closeFiles())
	switch {
	case IsDamaged(err): // it names the file
		return nil, err
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open %s: %w", j.path, ErrInUse)
	}
	return nil, fmt.Errorf("open %s: %w", j.path, err)
}

// closeFiles closes the files that are open.
func (j *Journal) closeFiles() (err error) {
	if j.wal != nil {
		err = j.wal.Close()
	}
	if j.db != nil {
		err = errors.Join(err, j.db.Close())
	}
	return err
}

func (j *Journal) openBolt(noSync bool) (err error) {
	j.db, err = boltfile.Open(j.path, func() (*bolt.DB, error) {
		return bolt.Open(j.path, 0o600, &bolt.Options{
			Timeout: time.Second, NoFreelistSync: true, FreelistType: bolt.FreelistMapType, NoSync: noSync,
		})
	})
	if err != nil {
		return err
	}
	return j.update(func(tx *bolt.Tx) error {
		for _, name := range j.buckets {
			if _, cause := tx.CreateBucketIfNotExists(name); cause != nil {
				return fmt.Errorf("create bucket %s: %w", name, cause)
			}
		}
		return nil
	})
}

// openWal opens the write-ahead file and has bbolt take what stands in it.
func (j *Journal) openWal(o Options) error {
	size := o.WalBytes
	if size == 0 {
		size = walBytes
	}
	noted, err := j.notedGeneration()
	if err != nil {
		return err
	}
	path := filepath.Join(o.Dir, o.Name+".wal")
	var records [][]byte
	if j.wal, records, err = walfile.Open(path, size, noted); err != nil {
		return err
	}
	j.wal.NoSync = o.NoSync
	for i, r := range records {
		if err = replay(r, len(j.buckets), j.newest); err != nil {
			return fmt.Errorf("%s is %w: record %d: %w", path, walfile.ErrDamaged, i, err)
		}
	}
	return j.flush(noted == 0, nil)
}

// notedGeneration returns the generation that bbolt has noted, 0 if none.
func (j *Journal) notedGeneration() (uint64, error) {
	v, err := j.getBolt(place{0, string(keyGeneration)})
	if err != nil || len(v) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}
