package raftlog

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
)

// hangingLead opens three members whose leader's disk hangs from the next write,
// which is under way when it returns.
func hangingLead(t *testing.T, hang time.Duration) (c *cluster, lead *Log, release func()) {
	t.Helper()
	c = newCluster(t)
	c.time.stall, c.time.hang = 300*time.Millisecond, hang
	lead, bad := c.openBad(t, "a")
	c.open(t, "b")
	c.open(t, "cc")
	id := register(t, lead)
	bad.hang.Lock()
	go func() {
		_, _ = lead.Propose(t.Context(), command.Command{ID: id, Body: &command.Addresses{HTTP: "hangs"}})
	}()
	return c, lead, bad.hang.Unlock
}

// successor waits for another leader.
func (c *cluster) successor(t *testing.T, old *Log) *Log {
	t.Helper()
	for ctx := patience(t); ; {
		for _, l := range c.running() {
			if l != old && l.Calls.Leads() {
				return l
			}
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("nobody takes the leadership over")
		}
	}
}

// A leader whose disk hangs hands over; if the disk comes back it follows.
func TestLeadHandsOverWhenDiskStalls(t *testing.T) {
	c, old, release := hangingLead(t, time.Hour)
	next := c.successor(t, old)
	register(t, next)
	if err := old.Err(); err != nil {
		t.Errorf("it failed before its time: %v", err)
	}
	release()
	if _, err := old.Sync(patience(t)); err != nil {
		t.Errorf("with its disk back: %v", err)
	}
	await(t, "the end of the write", func() bool { _, took := old.store.Oldest(time.Now()); return took < c.time.stall })
	// It sends again when it leads again.
	for ctx := patience(t); !old.Calls.Leads(); {
		_ = next.raft.LeadershipTransferToServer("a", old.trans.LocalAddr()).Error()
		select {
		case <-time.After(20 * time.Millisecond):
			next = c.leader(t)
		case <-ctx.Done():
			t.Fatal("it does not lead again")
		}
	}
	register(t, old)
}

// A disk that does not come back ends the member with a clear message, and
// Close does not wait for it.
func TestHangingDiskFails(t *testing.T) {
	c, old, release := hangingLead(t, time.Second)
	next := c.successor(t, old)
	select {
	case <-old.Failed():
	case <-patience(t).Done():
		t.Fatal("the member goes on with a hanging disk")
	}
	err := old.Err()
	if !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), old.cfg.Dir) ||
		!strings.Contains(err.Error(), "check the disk") || strings.Contains(err.Error(), "\n") {
		t.Errorf("it failed of %v", err)
	}
	if err := old.Close(); !errors.Is(err, ErrStalled) {
		t.Errorf("close: %v", err)
	}
	register(t, next)
	release()
	select {
	case <-old.Ended():
	case <-time.After(coordtest.Patience):
		t.Error("goroutines are left although the disk came back")
	}
}

// lastWrite is a disk that hangs when the store is closed.
type lastWrite struct {
	store.Disk
	closing, back chan struct{}
}

func (d lastWrite) Close() error {
	close(d.closing)
	<-d.back
	return d.Disk.Close()
}

// The newest entries are written to bolt at the end: Close does not wait for that,
// either, if the disk hangs.
func TestHangingLastWrite(t *testing.T) {
	c := newCluster(t)
	c.time.stall, c.time.hang = 20*time.Millisecond, 2*time.Second // longer than a busy disk takes
	d := lastWrite{closing: make(chan struct{}), back: make(chan struct{})}
	c.disk = func(below store.Disk) store.Disk { d.Disk = below; return d }
	a := c.open(t, "a")
	register(t, a)
	end := make(chan error, 1)
	go func() { end <- a.Close() }()
	<-d.closing
	select {
	case err := <-end:
		if !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), "close the store") {
			t.Errorf("close: %v", err)
		}
	case <-patience(t).Done():
		t.Error("it waits")
	}
	close(d.back)
	select {
	case <-a.Ended():
	case <-time.After(coordtest.Patience):
		t.Error("goroutines are left although the disk came back")
	}
}

// A lone voter has nobody to hand over to: it keeps the leadership until it fails.
func TestLoneVoterKeepsLead(t *testing.T) {
	c := newCluster(t)
	c.time.stall = 50 * time.Millisecond
	a, bad := c.openBad(t, "a")
	b := c.open(t, "b")
	id := register(t, a)
	bad.hang.Lock()
	end := make(chan error, 1)
	go func() {
		_, err := a.Propose(patience(t), command.Command{ID: id, Body: &command.Addresses{HTTP: "slow"}})
		end <- err
	}()
	for {
		if _, took := a.store.Oldest(time.Now()); took > 4*c.time.stall {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	if lead := b.Status().Lead; lead != "a" {
		t.Errorf("the leader is %q", lead)
	}
	bad.hang.Unlock()
	if err := <-end; err != nil {
		t.Errorf("a slow write: %v", err)
	}
}
