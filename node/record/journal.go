package record

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/journal"
)

// Journal is what a broker must not forget (architecture D5). All writes that
// wait are committed with one sync, before anything that depends on them is
// forked, sent or answered: that is the group commit.
type Journal struct{ *journal.Journal }

// Errors of the journal.
var (
	// ErrForeignData: the data directory belongs to another site or federation.
	ErrForeignData = errors.New("data directory belongs to another site")
	// ErrDataInUse: another broker has the data directory open.
	ErrDataInUse = errors.New("data directory is in use by another broker")
	// ErrJournalStalled: a write of the journal does not return.
	ErrJournalStalled = journal.ErrStalled
)

// Bucket is one of those that follow.
type Bucket = journal.Bucket

// Buckets of the journal, by their place in bucketNames.
const (
	BucketMeta         journal.Bucket = iota // fixed names → values
	BucketHome                               // job number → command.JobSpec and since when it may run, at home
	BucketTasks                              // job number, task → homeTask; without one it waits for its first attempt
	BucketPublishing                         // first job number → encoded command.Command with a Submit
	BucketAttempts                           // attempt's name → attemptRecord
	BucketKeys                               // hash of idempotency key, first line → keyRun
	BucketRows                               // sequence → usageRow, ended home runs not yet in a batch
	BucketUsage                              // batch number → []usageRow, batches not yet applied
	BucketUsers                              // first job number → whose.run, the user of consecutive jobs
	BucketQuotas                             // user → limits and decayed use of this site's users
	BucketOutgoing                           // attempt's name → stageout.Entry, outputs kept for another site
	BucketResults                            // job number → its user and end; job number, task → the result of the task
	BucketNotices                            // job number → node.Notices, what is to be sent of its end
	BucketHeld                               // job number → a job that waits for others, or has waited in vain
	BucketOutcomes                           // job number → the state in which a job has ended that held ones name
	BucketGates                              // job number → what was asked of its tasks by hand: a hold, cancels
	BucketElements                           // job number → how its tasks have ended that others wait for one by one
	BucketAttached                           // job number → node.Attached, what is kept of it beside its spec
	BucketAttachedEnds                       // job number → node.AttachedEnd, how one of those has ended
	BucketPriorities                         // job number → the priority that a published job is to have
)

var bucketNames = []string{
	"meta", "home", "tasks", "publishing", "attempts", "key-runs", "rows", "usage", "users", "quotas", "outgoing", "results",
	"notices",
	"held", "outcomes", "gates", "elements", "attached", "attached-ends", "priorities",
}

var (
	keyIdentity = []byte("identity")
	// KeyNextJob is where the number stands that the next job gets.
	KeyNextJob = []byte("next-job")
	keyBoots   = []byte("boots")
)

// identity of a data directory; written once.
type identity struct {
	Site string   `json:"site"`
	Node [16]byte `json:"node"`
}

// Reader reads what earlier lives of the broker have recorded.
type Reader interface {
	// Get returns a copy of a value, nil if there is none.
	Get(b journal.Bucket, key []byte) ([]byte, error)
	// Each calls f for all records of a bucket, by key; f must not keep what it is given.
	Each(b journal.Bucket, f func(key, value []byte) error) error
}

var _ Reader = (*Journal)(nil)

// OpenJournal opens or creates the journal in dir.
func OpenJournal(dir string) (*Journal, error) { return OpenWith(journal.Options{Dir: dir}) }

// OpenWith opens the journal in o.Dir; tests set the other options.
func OpenWith(o journal.Options) (*Journal, error) {
	o.Name, o.Buckets = "journal", bucketNames
	j, err := journal.Open(o)
	switch {
	case journal.IsDamaged(err):
		return nil, fmt.Errorf("open journal: %w: check the disk, set the data directory aside and come back on an empty one as after a wiped disk (cloudshare guide operator)", err)
	case errors.Is(err, journal.ErrInUse):
		return nil, fmt.Errorf("open journal in %s: %w: stop that broker first", o.Dir, ErrDataInUse)
	case err != nil:
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return &Journal{j}, nil
}

// Write is one change of the journal.
type Write = journal.Write

// Put returns a write that must be durable before the turn's effects.
func Put(b journal.Bucket, key, value []byte) Write { return journal.Put(b, key, value) }

// PutRecord is put of a record that whoever syncs encodes, not the core.
func PutRecord(b journal.Bucket, key []byte, v any) Write {
	return Write{Bucket: b, Key: key, Record: v}
}

// Remove returns a deletion that must be durable before the turn's effects.
func Remove(b journal.Bucket, key []byte) Write { return journal.Delete(b, key) }

// Tidy returns a lazy deletion.
func Tidy(b journal.Bucket, key []byte) Write { return Write{Bucket: b, Key: key, Lazy: true} }

// Identify binds a directory to a site and its node, and refuses one that is another's and has joined a
// federation: before that nothing was promised under its name.
func (j *Journal) Identify(site string, node [16]byte, joined bool) error {
	id, err := j.identity()
	mine := identity{Site: site, Node: node}
	if err == nil && (id == nil || !joined && *id != mine) {
		id = &mine
		err = j.Commit([]Write{PutRecord(BucketMeta, keyIdentity, id)})
	}
	switch {
	case err != nil:
		return fmt.Errorf("read identity of the data directory: %w", err)
	case id.Site != site:
		return fmt.Errorf("%w: it is %s's, this broker is %s: give the right --data-dir or --site", ErrForeignData, id.Site, site)
	case id.Node != node:
		return fmt.Errorf("%w: it is that of node %x, and its key is that of node %x: put back the key that was made there",
			ErrForeignData, id.Node, node)
	}
	return nil
}

// Succeed binds a directory of a site to the site's next key, whatever key it was of before. The caller has seen that
// the federation has replaced it.
func (j *Journal) Succeed(site string, node [16]byte) error {
	id, err := j.identity()
	if err != nil {
		return fmt.Errorf("read identity of the data directory: %w", err)
	}
	if id != nil && id.Site == site && id.Node != node {
		id.Node = node
		if err = j.Commit([]Write{PutRecord(BucketMeta, keyIdentity, id)}); err != nil {
			return fmt.Errorf("record the site's next key: %w", err)
		}
	}
	return nil
}

// identity returns nil if the directory is new.
func (j *Journal) identity() (*identity, error) {
	v, err := j.Get(BucketMeta, keyIdentity)
	if err != nil || v == nil {
		return nil, err
	}
	id := &identity{}
	return id, json.Unmarshal(v, id)
}

// Boot records a new boot, synced before it is registered, and returns all that
// may be the site's latest registration, this one first: they prove that the
// journal is not an old copy. The last one is the boot that is known to have
// been registered; it stays however often the broker starts without a quorum.
func (j *Journal) Boot(boot [16]byte) (known [][16]byte, err error) {
	v, err := j.Get(BucketMeta, keyBoots)
	if err == nil && v != nil {
		err = json.Unmarshal(v, &known)
	}
	known = append([][16]byte{boot}, known...)
	if n := len(known); n > command.MaxKnown {
		known = append(known[:command.MaxKnown-1], known[n-1])
	}
	if err == nil {
		err = j.Commit([]Write{PutRecord(BucketMeta, keyBoots, known)})
	}
	if err != nil {
		return nil, fmt.Errorf("record the broker's start: %w", err)
	}
	return known, nil
}

// RegisteredAs returns a write that notes that a boot was registered: older ones are
// of no use any more. A newer one may be on its way to its own registration.
func RegisteredAs(boot [16]byte) Write {
	return Write{Bucket: BucketMeta, Key: keyBoots, Merge: func(old []byte) []byte {
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

// Number returns a key that keeps numeric order.
func Number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// TaskKey returns a home task's key; those of one job follow each other.
func TaskKey(num uint64, task uint32) []byte {
	return binary.BigEndian.AppendUint32(Number(num), task)
}

// DecodeNumber reads what number wrote, 0 for anything else.
func DecodeNumber(k []byte) uint64 {
	if len(k) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(k)
}

// record encodes v; the types used here always encode.
func record(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("journal record does not encode: " + err.Error())
	}
	return data
}

// KeyEpoch is where the epoch stands that this site was last ready for.
var KeyEpoch = []byte("epoch")

// Epoch returns the epoch that this site was last ready for.
func (j *Journal) Epoch() (uint64, error) {
	v, err := j.Get(BucketMeta, KeyEpoch)
	return DecodeNumber(v), err
}
