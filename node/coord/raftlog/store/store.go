package store

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/raftlog/latency"
	"github.com/cloudshare/cloudshare/node/journal"
)

// cacheBytes bounds the recent entries kept in memory for replication; the
// newest is always kept.
const cacheBytes = 32 << 20

// Store is raft's log and stable store: the disk, a cache bounded in bytes, and the
// rule that an error of the disk ends this member. raft panics when it cannot
// read a committed entry or save its term; once the member runs, the goroutine
// that met the error ends instead, and the log shuts raft down.
type Store struct {
	disk Disk
	// synced observes that n entries were synced; it must not block.
	synced func(took time.Duration, n int)
	fail   func(error)
	// Coming, if not nil, observes entries that are about to be written; it must not block. It is set before raft runs.
	Coming  func(logs []*raft.Log)
	running atomic.Bool // false while Open still reads: errors are returned then

	limit int // of bytes
	ops   operations
	took  struct {
		sync.Mutex
		latency.Recent // of StoreLogs
	}

	mu     sync.RWMutex
	recent map[uint64]*raft.Log
	low    uint64 // Invariant: recent holds low … high without a gap, or is empty.
	high   uint64
	bytes  int
}

// Disk is what the store needs of logStore; tests inject faults.
type Disk interface {
	raft.LogStore
	raft.StableStore
	Close() error
}

var (
	_ raft.LogStore    = (*Store)(nil)
	_ raft.StableStore = (*Store)(nil)
)

// Open opens the log and the votes in dir.
func Open(dir string) (Disk, error) {
	s, err := openLogStore(dir, 0)
	if journal.IsDamaged(err) {
		return nil, fmt.Errorf("%w: check the disk, set the data directory aside and come back on an empty one as after a wiped disk (cloudshare guide operator): "+
			"the other voters have the log (cloudshare guide operator)", err)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// New returns a store on a disk. synced observes that n entries were synced, fail ends the
// member.
func New(d Disk, synced func(took time.Duration, n int), fail func(error)) *Store {
	return &Store{disk: d, synced: synced, fail: fail, limit: cacheBytes, recent: map[uint64]*raft.Log{}}
}

// SetRunning says whether an error of the disk ends the member, or is returned.
func (s *Store) SetRunning(yes bool) { s.running.Store(yes) }

// TrimCache forgets the entries in memory; they are read from the disk then.
func (s *Store) TrimCache() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trimCache()
}

// check reports a fault of the disk.
func (s *Store) check(what string, err error) error {
	if err == nil || errors.Is(err, raft.ErrLogNotFound) || errors.Is(err, errKeyNotFound) {
		return err
	}
	err = fmt.Errorf("%s: %w: check the disk, then start the broker again", what, err)
	if s.running.Load() {
		s.fail(err)
	}
	return err
}

// checkFatal is check for the calls whose error raft answers with a panic.
func (s *Store) checkFatal(what string, err error) error {
	if err = s.check(what, err); err != nil && s.running.Load() &&
		!errors.Is(err, raft.ErrLogNotFound) && !errors.Is(err, errKeyNotFound) {
		runtime.Goexit()
	}
	return err
}

// FirstIndex implements raft.LogStore.
func (s *Store) FirstIndex() (uint64, error) {
	i, err := s.disk.FirstIndex()
	return i, s.check("read first log index", err)
}

// LastIndex implements raft.LogStore.
func (s *Store) LastIndex() (uint64, error) {
	i, err := s.disk.LastIndex()
	return i, s.check("read last log index", err)
}

// GetLog implements raft.LogStore.
func (s *Store) GetLog(index uint64, l *raft.Log) error {
	s.mu.RLock()
	c := s.recent[index]
	s.mu.RUnlock()
	if c != nil {
		*l = *c
		return nil
	}
	return s.checkFatal(fmt.Sprintf("read log entry %d", index), s.disk.GetLog(index, l))
}

// StoreLog implements raft.LogStore.
func (s *Store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *Store) StoreLogs(logs []*raft.Log) error {
	if s.Coming != nil {
		s.Coming(logs)
	}
	begin := time.Now()
	const what = "write log entries"
	end := s.ops.begin(what, begin)
	err := s.disk.StoreLogs(logs)
	end()
	if err = s.check(what, err); err != nil {
		return err
	}
	took := time.Since(begin)
	s.took.Lock()
	s.took.Add(begin.Add(took), took)
	s.took.Unlock()
	s.synced(took, len(logs))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range logs {
		s.cacheEntry(l)
	}
	return nil
}

// Latency returns the median time of the recent writes of entries, the one under way
// included if it is longer already; ok is false if there were too few.
func (s *Store) Latency(now time.Time) (d time.Duration, ok bool) {
	_, oldest := s.Oldest(now)
	s.took.Lock()
	defer s.took.Unlock()
	if d, ok = s.took.Median(now); oldest > d {
		d, ok = s.took.Median(now, oldest)
	}
	return d, ok
}

// REQUIRES: s.mu held.
func (s *Store) cacheEntry(l *raft.Log) {
	if len(s.recent) > 0 && l.Index != s.high+1 {
		s.trimCache()
	}
	if len(s.recent) == 0 {
		s.low = l.Index
	}
	s.high = l.Index
	s.recent[l.Index] = l
	s.bytes += entrySize(l)
	for s.bytes > s.limit && s.low < s.high {
		s.bytes -= entrySize(s.recent[s.low])
		delete(s.recent, s.low)
		s.low++
	}
}

func entrySize(l *raft.Log) int { return len(l.Data) + len(l.Extensions) + 256 }

// REQUIRES: s.mu held.
func (s *Store) trimCache() {
	clear(s.recent)
	s.bytes = 0
}

// DeleteRange implements raft.LogStore.
func (s *Store) DeleteRange(from, to uint64) error {
	s.mu.Lock()
	if to >= s.low {
		s.trimCache()
	}
	s.mu.Unlock()
	const what = "delete log entries"
	end := s.ops.begin(what, time.Now())
	err := s.disk.DeleteRange(from, to)
	end()
	return s.check(what, err)
}

// Close writes what bbolt does not have yet, so it is watched as the writes are.
func (s *Store) Close() error {
	defer s.ops.begin("close the store", time.Now())()
	return s.disk.Close()
}

// Set implements raft.StableStore.
func (s *Store) Set(k, v []byte) error {
	const what = "save vote"
	end := s.ops.begin(what, time.Now())
	err := s.disk.Set(k, v)
	end()
	return s.checkFatal(what, err)
}

// Get implements raft.StableStore.
func (s *Store) Get(k []byte) ([]byte, error) {
	v, err := s.disk.Get(k)
	return v, s.check("read vote", err)
}

// SetUint64 implements raft.StableStore.
func (s *Store) SetUint64(k []byte, v uint64) error {
	const what = "save term"
	end := s.ops.begin(what, time.Now())
	err := s.disk.SetUint64(k, v)
	end()
	return s.checkFatal(what, err)
}

// GetUint64 implements raft.StableStore.
func (s *Store) GetUint64(k []byte) (uint64, error) {
	v, err := s.disk.GetUint64(k)
	return v, s.check("read term", err)
}
