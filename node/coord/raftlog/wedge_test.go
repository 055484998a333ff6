package raftlog

import (
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// TestStoreErrorsDoNotWedge is the experiment that wedges a follower for good
// under raft's default pipelining: short bursts of store errors at a follower
// while entries flow. Our transport does not pipeline, and the follower catches
// up. (A member of ours ends at the first such error; here it is told not to.)
func TestStoreErrorsDoNotWedge(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	b, bad := c.openBad(t, "b")
	c.open(t, "cc")
	b.store.running.Store(false) // errors go to raft

	// Straight to raft, one entry a call: batching would hide the fault. Every
	// member skips an entry that was stamped in another term.
	void := raft.Log{Data: make([]byte, 64), Extensions: (&relay.Header{Term: 0}).Append(nil)}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = a.raft.ApplyLog(void, time.Second).Error() // the lead may change under load
				}
			}
		})
	}
	const bursts = 15
	for range bursts {
		bad.logs.Store(true)
		<-time.After(30 * time.Millisecond)
		bad.logs.Store(false)
		<-time.After(70 * time.Millisecond)
	}
	close(stop)
	wg.Wait()
	if bad.failures.Load() < bursts {
		t.Fatalf("%d store errors: the test shows nothing", bad.failures.Load())
	}
	want := c.leader(t).raft.CommitIndex()
	for ctx := patience(t); b.machine.position.Now() < want; {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the follower is stuck at %d, the lead has %d", b.machine.position.Now(), want)
		}
	}
}
