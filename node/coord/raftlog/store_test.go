package raftlog

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
)

var errDisk = errors.New("injected EIO")

// badDisk fails what its switches say.
type badDisk struct {
	store.Disk
	logs, reads, votes atomic.Bool
	failures           atomic.Int64
	hang               sync.RWMutex // held: writes of entries hang
}

func (b *badDisk) StoreLogs(l []*raft.Log) error {
	b.hang.RLock()
	defer b.hang.RUnlock()
	if b.logs.Load() {
		b.failures.Add(1)
		return errDisk
	}
	return b.Disk.StoreLogs(l)
}

func (b *badDisk) GetLog(i uint64, l *raft.Log) error {
	if b.reads.Load() {
		return errDisk
	}
	return b.Disk.GetLog(i, l)
}

func (b *badDisk) SetUint64(k []byte, v uint64) error {
	if b.votes.Load() {
		return errDisk
	}
	return b.Disk.SetUint64(k, v)
}

func (c *cluster) openBad(t *testing.T, site string) (*Log, *badDisk) {
	t.Helper()
	var bad *badDisk
	c.disk = func(d store.Disk) store.Disk { bad = &badDisk{Disk: d}; return bad }
	defer func() { c.disk = nil }()
	return c.open(t, site), bad
}

func failed(t *testing.T, l *Log) {
	t.Helper()
	select {
	case <-l.Failed():
	case <-patience(t).Done():
		t.Fatal("the member goes on with a bad disk")
	}
	if err := l.Err(); !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "check the disk") {
		t.Errorf("it failed of %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestLeadWithBadDisk(t *testing.T) {
	c := newCluster(t)
	a, bad := c.openBad(t, "a")
	b := c.open(t, "b")
	c.open(t, "cc")
	register(t, b)
	id := register(t, a)
	if !a.Calls.Leads() {
		t.Fatal("the founder does not lead")
	}
	bad.logs.Store(true)
	_, err := a.Propose(patience(t), command.Command{ID: id, Body: &command.Addresses{}})
	if !errors.Is(err, coord.ErrUnknown) {
		t.Errorf("a proposal that the disk refused: %v", err)
	}
	failed(t, a)
	if _, err := b.Propose(patience(t), command.Command{
		ID:   command.ID{Site: "b", Incarnation: 1, Seq: 1},
		Body: &command.Addresses{},
	}); err != nil {
		t.Errorf("the others: %v", err)
	}
}

// badFollower opens three members, of which b, no leader, has a disk that can fail.
func badFollower(t *testing.T) (c *cluster, a, b *Log, bad *badDisk) {
	t.Helper()
	c = newCluster(t)
	a = c.open(t, "a")
	b, bad = c.openBad(t, "b")
	c.open(t, "cc")
	return c, a, b, bad
}

func TestFollowerWithBadDisk(t *testing.T) {
	_, a, b, bad := badFollower(t)
	bad.logs.Store(true)
	register(t, a)
	failed(t, b)
}

// raft panics when it cannot save its term: the member fails instead.
func TestTermNotSaved(t *testing.T) {
	c, _, b, bad := badFollower(t)
	bad.votes.Store(true)
	_ = c.leader(t).raft.LeadershipTransfer().Error() // to b, or b is asked to vote
	failed(t, b)
}

// raft panics when it cannot read a committed entry: the member fails instead.
func TestEntryNotRead(t *testing.T) {
	_, _, b, bad := badFollower(t)
	bad.reads.Store(true)
	b.store.TrimCache()
	// The entry in the cache would hide the fault: apply one that left it.
	index := b.raft.AppliedIndex()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.store.GetLog(index, new(raft.Log))
		t.Error("the goroutine that met the error goes on")
	}()
	<-ended
	failed(t, b)
}
