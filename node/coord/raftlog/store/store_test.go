package store

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

var errDisk = errors.New("injected EIO")

// badDisk fails to read entries on request.
type badDisk struct {
	Disk
	reads atomic.Bool
}

func (b *badDisk) GetLog(i uint64, l *raft.Log) error {
	if b.reads.Load() {
		return errDisk
	}
	return b.Disk.GetLog(i, l)
}

func TestStoreCache(t *testing.T) {
	b, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	bad := &badDisk{Disk: b}
	s := New(bad, func(time.Duration, int) {}, func(error) {})
	s.limit = 32 << 10
	const n = 40
	for i := uint64(1); i <= n; i++ {
		if err := s.StoreLog(&raft.Log{Index: i, Term: 1, Data: make([]byte, 1<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	if s.bytes > s.limit || s.low < 2 || s.high != n {
		t.Errorf("%d bytes cached, entries %d to %d", s.bytes, s.low, s.high)
	}
	var l raft.Log
	for i := uint64(1); i <= n; i++ {
		if err := s.GetLog(i, &l); err != nil || l.Index != i {
			t.Fatalf("entry %d: %d, %v", i, l.Index, err)
		}
	}
	bad.reads.Store(true)
	if err := s.GetLog(n, &l); err != nil {
		t.Errorf("a recent entry is read from the disk: %v", err)
	}
	// A follower's suffix is replaced by another leader's.
	if err := s.DeleteRange(n-1, n); err != nil {
		t.Fatal(err)
	}
	if err := s.GetLog(n, &l); !errors.Is(err, errDisk) {
		t.Errorf("a deleted entry is still cached: %v", err)
	}
}
