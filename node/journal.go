package node

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/boltfile"
	"github.com/cloudshare/cloudshare/node/walfile"
)

// Journal is what a broker must not forget (architecture D5), in one bbolt
// file and the write-ahead file in front of it (journalfront.go). All writes that
// wait are committed with one sync, before anything that depends on them is
// forked, sent or answered: that is the group commit.
//
// Assumption: a sync that returned survives a crash of the machine.
type Journal struct {
	db    *bolt.DB
	mu    sync.Mutex // held over a write
	front front
	// closed: guarded by mu.
	closed bool
	// began is when the write under way was asked for; nil: there is none.
	began atomic.Pointer[time.Time]
}

// Errors of the journal.
var (
	// ErrForeignData: the data directory belongs to another site or federation.
	ErrForeignData = errors.New("data directory belongs to another site")
	// ErrDataInUse: another broker has the data directory open.
	ErrDataInUse = errors.New("data directory is in use by another broker")
	// ErrJournalStalled: a write of the journal does not return.
	ErrJournalStalled = errors.New("the disk hangs")
)

var (
	bucketMeta       = []byte("meta")       // fixed names → values
	bucketHome       = []byte("home")       // job number → fsm.JobSpec, own jobs run outside the log
	bucketTasks      = []byte("tasks")      // job number, task → homeTask; without one it waits for its first attempt
	bucketPublishing = []byte("publishing") // first job number → encoded fsm.Command with a Submit
	bucketAttempts   = []byte("attempts")   // attempt's name → attemptRecord
	bucketKeys       = []byte("key-runs")   // hash of idempotency key, first line → keyRun
	bucketRows       = []byte("rows")       // sequence → usageRow, ended home runs not yet in a batch
	bucketUsage      = []byte("usage")      // batch number → []usageRow, batches not yet applied
	allBuckets       = [][]byte{bucketMeta, bucketHome, bucketTasks, bucketPublishing, bucketAttempts, bucketKeys, bucketRows, bucketUsage}
)

var (
	keyIdentity = []byte("identity")
	keyNextJob  = []byte("next-job")
	keyBoots    = []byte("boots")
)

// identity of a data directory; written once.
type identity struct {
	Site string   `json:"site"`
	Node [16]byte `json:"node"`
}

// attemptRecord is synced before the attempt is started anywhere: a record
// without a supervisor or a result is settled as lost, never started again.
type attemptRecord struct {
	ID      executor.ID        `json:"id"`
	Home    bool               `json:"home,omitempty"`
	Machine string             `json:"machine"`
	Need    executor.Resources `json:"need"`
	// Bounded: it ends by a bound that the federation knows, not by the lease.
	Bounded bool `json:"bounded,omitempty"`
	// AssignedMs is when this broker first saw the assignment, unix milliseconds.
	AssignedMs int64 `json:"assigned_ms"`
}

// usageRow is an ended home run, kept until a usage batch with it is applied.
type usageRow struct {
	Job     uint64        `json:"job"`
	Task    uint32        `json:"task"`
	Need    fsm.Resources `json:"need"`
	EndedMs int64         `json:"ended_ms"` // unix milliseconds
	RunMs   int64         `json:"run_ms"`
	WaitMs  int64         `json:"wait_ms"`
}

// OpenJournal opens or creates the journal in dir.
func OpenJournal(dir string) (*Journal, error) { return openJournal(dir, journalWalBytes) }

// openJournal is OpenJournal with a write-ahead file of walBytes, if it makes one.
func openJournal(dir string, walBytes int64) (*Journal, error) {
	path := filepath.Join(dir, "journal.db")
	db, err := boltfile.Open(path, func() (*bolt.DB, error) {
		return bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bolt.FreelistMapType})
	})
	if errors.Is(err, boltfile.ErrDamaged) {
		return nil, damagedJournal(err)
	}
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("open %s: %w: stop that broker first", path, ErrDataInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", path, err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range allBuckets {
			if _, cause := tx.CreateBucketIfNotExists(name); cause != nil {
				return fmt.Errorf("create bucket %s: %w", name, cause)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare journal %s: %w", path, err), db.Close())
	}
	j := &Journal{db: db}
	if err = j.openFront(dir, walBytes); errors.Is(err, walfile.ErrDamaged) {
		err = damagedJournal(err)
	} else if err != nil {
		err = fmt.Errorf("open journal %s: %w", path, err)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return j, nil
}

func damagedJournal(err error) error {
	return fmt.Errorf("open journal: %w: check the disk, set the data directory aside and join as a new site (cloudshare guide operator)", err)
}

// Close closes the file; idempotent. It gives up for a disk that hangs
// (ErrJournalStalled): with a write under way at once, else after journalHang.
func (j *Journal) Close() error { return j.closeWithin(journalHang) }

func (j *Journal) closeWithin(limit time.Duration) error {
	hangs := fmt.Errorf("close journal: %w: end the process", ErrJournalStalled)
	if j.began.Load() != nil {
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
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	var err error
	if j.front.broken == nil {
		err = j.flush(false, func(*bolt.Tx) error { return nil })
	}
	if err = errors.Join(err, j.front.wal.Close(), j.db.Close()); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// write is one change of the journal; a nil value deletes.
type write struct {
	bucket, key, value []byte
	// record, if set, is encoded to the value by whoever syncs, not by the core;
	// nothing that it holds may change.
	record any
	// lazy writes only tidy up: a crash that undoes them is harmless, so they
	// are synced with the next others, not by themselves.
	lazy bool
	// merge, if set, makes the value from what is there.
	merge func(old []byte) []byte
}

// put is a write that must be durable before the turn's effects.
func put(bucket, key, value []byte) write { return write{bucket: bucket, key: key, value: value} }

// putRecord is put of a record that is still to be encoded.
func putRecord(bucket, key []byte, v any) write { return write{bucket: bucket, key: key, record: v} }

// remove is a deletion that must be durable before the turn's effects.
func remove(bucket, key []byte) write { return write{bucket: bucket, key: key} }

// tidy is a lazy deletion.
func tidy(bucket, key []byte) write { return write{bucket: bucket, key: key, lazy: true} }

// Identify binds a directory to the site, and refuses one of another site that
// has joined a federation: before that nothing was promised under its name.
func (j *Journal) Identify(site string, node [16]byte, joined bool) ([16]byte, error) {
	id := identity{Site: site, Node: node}
	err := j.update(func(tx *bolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if v := meta.Get(keyIdentity); v != nil {
			old := identity{}
			if cause := json.Unmarshal(v, &old); cause != nil || joined || old.Site == site {
				id = old
				return cause
			}
		}
		v, err := json.Marshal(id)
		if err != nil {
			return err
		}
		return meta.Put(keyIdentity, v)
	})
	if err != nil {
		return node, fmt.Errorf("read identity of the data directory: %w", err)
	}
	if id.Site != site {
		return node, fmt.Errorf("%w: it is %s's, this broker is %s: give the right --data-dir or --site", ErrForeignData, id.Site, site)
	}
	return id.Node, nil
}

// Boot records a new boot, synced before it is registered, and returns all that
// may be the site's latest registration, this one first: they prove that the
// journal is not an old copy. The last one is the boot that is known to have
// been registered; it stays however often the broker starts without a quorum.
func (j *Journal) Boot(boot [16]byte) (known [][16]byte, err error) {
	err = j.update(func(tx *bolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if v := meta.Get(keyBoots); v != nil {
			if cause := json.Unmarshal(v, &known); cause != nil {
				return cause
			}
		}
		known = append([][16]byte{boot}, known...)
		if n := len(known); n > fsm.MaxKnown {
			known = append(known[:fsm.MaxKnown-1], known[n-1])
		}
		return meta.Put(keyBoots, record(known))
	})
	if err != nil {
		return nil, fmt.Errorf("record the broker's start: %w", err)
	}
	return known, nil
}

// registeredAs is a write that notes that a boot was registered: older ones are
// of no use any more. A newer one may be on its way to its own registration.
func registeredAs(boot [16]byte) write {
	return write{bucket: bucketMeta, key: keyBoots, merge: func(old []byte) []byte {
		var known [][16]byte
		if err := json.Unmarshal(old, &known); err != nil {
			known = nil // written by Boot
		}
		if i := slices.Index(known, boot); i >= 0 {
			return record(known[:i+1])
		}
		return record([][16]byte{boot})
	}}
}

// each calls f for every record of a bucket in key order.
func (j *Journal) each(bucket []byte, f func(k, v []byte) error) error {
	if err := j.update(func(*bolt.Tx) error { return nil }); err != nil {
		return fmt.Errorf("read journal bucket %s: %w", bucket, err)
	}
	err := j.db.View(func(tx *bolt.Tx) error { return tx.Bucket(bucket).ForEach(f) })
	if err != nil {
		return fmt.Errorf("read journal bucket %s: %w", bucket, err)
	}
	return nil
}

// get returns a copy of one record, nil if there is none.
func (j *Journal) get(bucket, key []byte) []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.look(place{bucketNumber(bucket), string(key)}))
}

// getBolt is get of what bbolt has.
func (j *Journal) getBolt(bucket, key []byte) (v []byte) {
	_ = j.db.View(func(tx *bolt.Tx) error { // the function returns nil
		v = append(v, tx.Bucket(bucket).Get(key)...)
		return nil
	})
	return v
}

// number is a bbolt key that keeps numeric order.
func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// taskKey is a home task's key; those of one job follow each other.
func taskKey(num uint64, task uint32) []byte {
	return binary.BigEndian.AppendUint32(number(num), task)
}

// record encodes v; the types used here always encode.
func record(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("journal record does not encode: " + err.Error())
	}
	return data
}
