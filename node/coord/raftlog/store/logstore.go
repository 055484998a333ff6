package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/journal"
)

// Buckets of the journal in raft.db: entries by index, and raft's own values.
const (
	bucketMeta journal.Bucket = iota
	bucketEntries
	bucketStable
)

// errKeyNotFound has the text by which raft knows it.
var errKeyNotFound = errors.New("not found")

// logStore is raft's log and stable store in a journal.
type logStore struct {
	j *journal.Journal

	changing sync.Mutex // held over a change of entries: raft deletes concurrently with storing; taken before mu
	mu       sync.RWMutex
	// first and last are the indexes of the oldest and the newest entry, 0 for none.
	// There may be a gap between them, behind a snapshot that the leader has sent.
	first, last uint64
}

var _ Disk = (*logStore)(nil)

// openLogStore opens the journal in dir; walBytes is for tests, 0: the usual size.
func openLogStore(dir string, walBytes int64) (*logStore, error) {
	j, err := journal.Open(journal.Options{Dir: dir, Name: "raft", Buckets: []string{"meta", "entries", "stable"}, WalBytes: walBytes})
	if err != nil {
		return nil, fmt.Errorf("open raft store: %w", err)
	}
	s := &logStore{j: j}
	if err = s.refreshBounds(); err != nil {
		return nil, errors.Join(fmt.Errorf("open raft store: %w", err), j.Close())
	}
	return s, nil
}

// refreshBounds reads first and last.
func (s *logStore) refreshBounds() error {
	first, last, err := s.j.Bounds(bucketEntries)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.last = parseIndex(first), parseIndex(last)
	return nil
}

// FirstIndex implements raft.LogStore.
func (s *logStore) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.first, nil
}

// LastIndex implements raft.LogStore.
func (s *logStore) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.last, nil
}

// GetLog implements raft.LogStore.
func (s *logStore) GetLog(index uint64, l *raft.Log) error {
	b, err := s.j.Get(bucketEntries, indexKey(index))
	if err != nil {
		return err
	}
	if b == nil {
		return raft.ErrLogNotFound
	}
	if err = parseEntry(b, l); err != nil {
		return fmt.Errorf("read entry %d: %w", index, err)
	}
	l.Index = index
	return nil
}

// StoreLog implements raft.LogStore.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	writes := make([]journal.Write, len(logs))
	for i, l := range logs {
		writes[i] = journal.Put(bucketEntries, indexKey(l.Index), encodeEntry(l))
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.j.Commit(writes); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range logs {
		if s.first == 0 || l.Index < s.first {
			s.first = l.Index
		}
		s.last = max(s.last, l.Index)
	}
	return nil
}

// DeleteRange implements raft.LogStore.
func (s *logStore) DeleteRange(from, to uint64) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.j.DeleteRange(bucketEntries, indexKey(from), indexKey(to)); err != nil {
		return err
	}
	return s.refreshBounds()
}

// Set implements raft.StableStore.
func (s *logStore) Set(k, v []byte) error {
	if v == nil {
		v = []byte{} // nil would delete
	}
	return s.j.Commit([]journal.Write{journal.Put(bucketStable, k, v)})
}

// Get implements raft.StableStore.
func (s *logStore) Get(k []byte) ([]byte, error) {
	v, err := s.j.Get(bucketStable, k)
	if err == nil && v == nil {
		err = errKeyNotFound
	}
	return v, err
}

// SetUint64 implements raft.StableStore.
func (s *logStore) SetUint64(k []byte, v uint64) error {
	return s.Set(k, binary.BigEndian.AppendUint64(nil, v))
}

// GetUint64 implements raft.StableStore.
func (s *logStore) GetUint64(k []byte) (uint64, error) {
	v, err := s.Get(k)
	if err == nil && len(v) != 8 {
		err = fmt.Errorf("read %s: it has %d bytes", k, len(v))
	}
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

// Close closes the journal.
func (s *logStore) Close() error { return s.j.Close() }

// indexKey keeps the order of indexes.
func indexKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

func parseIndex(key []byte) uint64 {
	if len(key) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}

// encodeEntry encodes all of an entry but its index.
//
//	term · type · data · extensions · unix nanoseconds, 0 = none
func encodeEntry(l *raft.Log) []byte {
	b := make([]byte, 0, len(l.Data)+len(l.Extensions)+32)
	b = binary.AppendUvarint(b, l.Term)
	b = append(b, byte(l.Type))
	b = binary.AppendUvarint(b, uint64(len(l.Data)))
	b = append(b, l.Data...)
	b = binary.AppendUvarint(b, uint64(len(l.Extensions)))
	b = append(b, l.Extensions...)
	at := uint64(0)
	if !l.AppendedAt.IsZero() {
		at = uint64(l.AppendedAt.UnixNano())
	}
	return binary.AppendUvarint(b, at)
}

// parseEntry reads what encodeEntry wrote; the entry points into b.
func parseEntry(b []byte, l *raft.Log) error {
	d := relay.NewDecoder(b)
	*l = raft.Log{Term: d.Uvarint(), Type: raft.LogType(d.Byte())}
	l.Data, l.Extensions = d.Bytes(len(b)), d.Bytes(len(b))
	if at := d.Uvarint(); at != 0 {
		l.AppendedAt = time.Unix(0, int64(at))
	}
	if !d.Done() {
		return errors.New("it does not read")
	}
	return nil
}
