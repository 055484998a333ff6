package results

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/record"
)

// Journal is where the book stands.
type Journal interface {
	record.Reader
	Commit(writes []record.Write) error
	DeleteRange(b record.Bucket, first, last []byte) error
}

// Options of a book.
type Options struct {
	Journal Journal
	Store   *store.Store
	// UserOf returns the user of a job of this site, "" = it is the site's own.
	UserOf func(num uint64) string
	Now    func() time.Time
}

// Book has the results of this site's jobs. It is safe for concurrent use.
type Book struct {
	journal Journal
	store   *store.Store
	userOf  func(num uint64) string
	now     func() time.Time

	mu   sync.RWMutex
	jobs map[uint64]*job
	// loaded is closed behind Load, whose error stands in loadErr: until then what results name is not known.
	loaded  chan struct{}
	loadErr error

	syncMu  sync.Mutex
	next    *group // that waits for the sync under way
	syncing bool
}

// job is one with results.
type job struct {
	header
	// recorded: its header is in the journal.
	recorded bool

	tasks []node.TaskResult  // by task. Invariant: one of each
	blobs map[files.Hash]int // that its results name, by how many of them; of those of before the start, behind Load
}

// Result is a task's of a job of this site.
type Result struct {
	Num uint64
	node.TaskResult
}

// Open reads the book from the journal.
func Open(o Options) (*Book, error) {
	b := &Book{
		journal: o.Journal, store: o.Store, userOf: o.UserOf, now: o.Now,
		jobs: map[uint64]*job{}, loaded: make(chan struct{}),
	}
	return b, b.recover()
}

// ErrNotWhole reports a result whose blobs are not all in the store.
var ErrNotWhole = errors.New("not all files of a result are here")

// Keep notes what a task has left, in the place of what it had left before, and pins it. All of it is in the store. It
// is durable when Keep returns. Errors: ErrNotWhole, those of package files for what is no manifest, the journal's.
func (b *Book) Keep(num uint64, r node.TaskResult) error { return b.KeepAll([]Result{{num, r}}) }

// KeepAll is Keep of many, with one sync: those for which there is no error are kept. It waits for Load.
func (b *Book) KeepAll(list []Result) error {
	if <-b.loaded; b.loadErr != nil {
		return b.loadErr
	}
	writes, errs := make([]record.Write, 0, len(list)), []error(nil)
	for i := range list {
		w, err := b.keep(&list[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("keep the results of task %d of job %d: %w", list[i].Task, list[i].Num, err))
		}
		writes = append(writes, w...)
	}
	err := b.commit(writes)
	b.settle(list, err == nil)
	if err != nil {
		return err
	}
	return errors.Join(errs...)
}

// settle notes that results are durable, or takes back what is not: else it would be told to be here.
func (b *Book) settle(list []Result, durable bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range list {
		r := &list[i]
		j := b.jobs[r.Num]
		if j == nil {
			continue
		}
		if durable {
			j.recorded = true
			continue
		}
		if at, found := j.find(r.Task); found && j.tasks[at] == r.TaskResult {
			b.unpin(r.Num, j, &r.TaskResult)
			j.tasks = slices.Delete(j.tasks, at, at+1)
		}
		if len(j.tasks) == 0 && !j.recorded {
			delete(b.jobs, r.Num)
		}
	}
}

// keep pins a result and notes it in memory: who reads the book now reads what is in the store.
func (b *Book) keep(r *Result) ([]record.Write, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j, writes := b.jobs[r.Num], []record.Write(nil)
	if j == nil {
		j = &job{header: header{User: b.userOf(r.Num)}, blobs: map[files.Hash]int{}}
	}
	if !j.recorded { // an earlier write of it may fail, or be under way
		writes = append(writes, record.PutRecord(record.BucketResults, record.Number(r.Num), j.header))
	}
	at, again := j.find(r.Task)
	if !again || j.tasks[at].Manifest != r.Manifest {
		if err := b.pin(r.Num, j, &r.TaskResult); err != nil {
			return nil, err
		}
		if again {
			b.unpin(r.Num, j, &j.tasks[at])
		}
	}
	if !again {
		j.tasks = slices.Insert(j.tasks, at, node.TaskResult{})
	}
	j.tasks[at] = r.TaskResult
	b.jobs[r.Num] = j
	key := record.TaskKey(r.Num, r.Task)
	return append(writes, record.Put(record.BucketResults, key, encode(&r.TaskResult))), nil
}

func (j *job) find(task uint32) (at int, found bool) {
	return slices.BinarySearchFunc(j.tasks, task, func(r node.TaskResult, t uint32) int {
		return cmp.Compare(r.Task, t)
	})
}
