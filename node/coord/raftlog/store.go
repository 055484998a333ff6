package raftlog

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"github.com/cloudshare/cloudshare/node/boltfile"
	"github.com/cloudshare/cloudshare/node/walfile"
)

// cacheBytes bounds the recent entries kept in memory for replication; the
// newest is always kept.
const cacheBytes = 32 << 20

// store is raft's log and stable store: bolt, a cache bounded in bytes, and the
// rule that an error of the disk ends this member. raft panics when it cannot
// read a committed entry or save its term; once the member runs, the goroutine
// that met the error ends instead, and the log shuts raft down.
type store struct {
	bolt    disk
	hooks   Hooks
	fail    func(error)
	running atomic.Bool // false while Open still reads: errors are returned then

	limit int // of bytes
	ops   operations
	took  struct {
		sync.Mutex
		latency // of StoreLogs
	}

	mu     sync.RWMutex
	recent map[uint64]*raft.Log
	low    uint64 // Invariant: recent holds low … high without a gap, or is empty.
	high   uint64
	bytes  int
}

// disk is what the store needs of raft-boltdb; tests inject faults.
type disk interface {
	raft.LogStore
	raft.StableStore
	Close() error
}

var (
	_ raft.LogStore    = (*store)(nil)
	_ raft.StableStore = (*store)(nil)
)

// openStore opens the log and the votes in dir: bolt, with the newest entries in
// front of it.
func openStore(dir string) (disk, error) {
	b, err := openBolt(filepath.Join(dir, "raft.db"))
	if err != nil {
		return nil, err
	}
	f, err := openFront(b, filepath.Join(dir, walName), walBytes)
	if err != nil {
		return nil, errors.Join(remedy(err), b.Close())
	}
	return f, nil
}

// remedy says what to do about a damaged store.
func remedy(err error) error {
	if errors.Is(err, boltfile.ErrDamaged) || errors.Is(err, walfile.ErrDamaged) {
		return fmt.Errorf("%w: check the disk, set the data directory aside and join as a new site: "+
			"the other voters have the log (cloudshare guide operator)", err)
	}
	return err
}

func openBolt(path string) (disk, error) {
	b, err := boltfile.Open(path, func() (*raftboltdb.BoltStore, error) {
		return raftboltdb.New(raftboltdb.Options{
			Path:        path,
			BoltOptions: &bbolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType},
		})
	})
	if err != nil {
		if errors.Is(err, boltfile.ErrDamaged) { // it names the file
			return nil, remedy(fmt.Errorf("open raft store: %w", err))
		}
		return nil, fmt.Errorf("open raft store %s: %w", path, err)
	}
	return &guarded{b, path}, nil
}

func newStore(d disk, hooks Hooks, fail func(error)) *store {
	return &store{bolt: d, hooks: hooks, fail: fail, limit: cacheBytes, recent: map[uint64]*raft.Log{}}
}

// check reports a fault of the disk.
func (s *store) check(what string, err error) error {
	if err == nil || errors.Is(err, raft.ErrLogNotFound) || errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return err
	}
	err = fmt.Errorf("%s: %w: check the disk, then start the broker again", what, err)
	if s.running.Load() {
		s.fail(err)
	}
	return err
}

// fatal is check for the calls whose error raft answers with a panic.
func (s *store) fatal(what string, err error) error {
	if err = s.check(what, err); err != nil && s.running.Load() &&
		!errors.Is(err, raft.ErrLogNotFound) && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		runtime.Goexit()
	}
	return err
}

// FirstIndex implements raft.LogStore.
func (s *store) FirstIndex() (uint64, error) {
	i, err := s.bolt.FirstIndex()
	return i, s.check("read first log index", err)
}

// LastIndex implements raft.LogStore.
func (s *store) LastIndex() (uint64, error) {
	i, err := s.bolt.LastIndex()
	return i, s.check("read last log index", err)
}

// GetLog implements raft.LogStore.
func (s *store) GetLog(index uint64, l *raft.Log) error {
	s.mu.RLock()
	c := s.recent[index]
	s.mu.RUnlock()
	if c != nil {
		*l = *c
		return nil
	}
	return s.fatal(fmt.Sprintf("read log entry %d", index), s.bolt.GetLog(index, l))
}

// StoreLog implements raft.LogStore.
func (s *store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *store) StoreLogs(logs []*raft.Log) error {
	begin := time.Now()
	const what = "write log entries"
	end := s.ops.begin(what, begin)
	err := s.bolt.StoreLogs(logs)
	end()
	if err = s.check(what, err); err != nil {
		return err
	}
	took := time.Since(begin)
	s.took.Lock()
	s.took.add(begin.Add(took), took)
	s.took.Unlock()
	if s.hooks.Store != nil {
		s.hooks.Store(took, len(logs))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range logs {
		s.remember(l)
	}
	return nil
}

// latency is the median time of the recent writes of entries, the one under way
// included if it is longer already; ok is false if there were too few.
func (s *store) latency(now time.Time) (d time.Duration, ok bool) {
	_, oldest := s.oldest(now)
	s.took.Lock()
	defer s.took.Unlock()
	if d, ok = s.took.median(now); oldest > d {
		d, ok = s.took.median(now, oldest)
	}
	return d, ok
}

// REQUIRES: s.mu held.
func (s *store) remember(l *raft.Log) {
	if len(s.recent) > 0 && l.Index != s.high+1 {
		s.forget()
	}
	if len(s.recent) == 0 {
		s.low = l.Index
	}
	s.high = l.Index
	s.recent[l.Index] = l
	s.bytes += size(l)
	for s.bytes > s.limit && s.low < s.high {
		s.bytes -= size(s.recent[s.low])
		delete(s.recent, s.low)
		s.low++
	}
}

func size(l *raft.Log) int { return len(l.Data) + len(l.Extensions) + 256 }

// REQUIRES: s.mu held.
func (s *store) forget() {
	clear(s.recent)
	s.bytes = 0
}

// DeleteRange implements raft.LogStore.
func (s *store) DeleteRange(from, to uint64) error {
	s.mu.Lock()
	if to >= s.low {
		s.forget()
	}
	s.mu.Unlock()
	const what = "delete log entries"
	end := s.ops.begin(what, time.Now())
	err := s.bolt.DeleteRange(from, to)
	end()
	return s.check(what, err)
}

// Close writes what bolt does not have yet, so it is watched as the writes are.
func (s *store) Close() error {
	defer s.ops.begin("close the store", time.Now())()
	return s.bolt.Close()
}

// Set implements raft.StableStore.
func (s *store) Set(k, v []byte) error {
	const what = "save vote"
	end := s.ops.begin(what, time.Now())
	err := s.bolt.Set(k, v)
	end()
	return s.fatal(what, err)
}

// Get implements raft.StableStore.
func (s *store) Get(k []byte) ([]byte, error) {
	v, err := s.bolt.Get(k)
	return v, s.check("read vote", err)
}

// SetUint64 implements raft.StableStore.
func (s *store) SetUint64(k []byte, v uint64) error {
	const what = "save term"
	end := s.ops.begin(what, time.Now())
	err := s.bolt.SetUint64(k, v)
	end()
	return s.fatal(what, err)
}

// GetUint64 implements raft.StableStore.
func (s *store) GetUint64(k []byte) (uint64, error) {
	v, err := s.bolt.GetUint64(k)
	return v, s.check("read term", err)
}
