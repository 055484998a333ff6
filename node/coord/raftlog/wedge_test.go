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
// while entries flow. Our transport pipelines in its own way, and the follower catches
// up. (A member of ours ends at the first such error; here it is told not to.)
func TestStoreErrorsDoNotWedge(t *testing.T) {
	c := newCluster(t)
	c.open(t, "a")
	b, bad := c.openBad(t, "b")
	c.open(t, "cc")
	b.store.SetRunning(false) // errors go to raft

	// Straight to raft, one entry a call: batching would hide the fault. Every
	// member skips an entry that was stamped in another term.
	void := raft.Log{Data: make([]byte, 64), Extensions: (&relay.Header{Term: 0}).Append(nil)}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); wg.Wait() })
	defer end()
	members := c.running()
	for range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default: // whoever leads: that may change under load
					_ = members[i%len(members)].raft.ApplyLog(void, time.Second).Error()
				}
			}
		})
	}
	const bursts = 15
	for range bursts {
		burst(t, b, bad)
	}
	end()
	want := c.leader(t).raft.CommitIndex()
	for ctx := patience(t); b.machine.position.Now() < want; {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the follower is stuck at %d, the leader has %d", b.machine.position.Now(), want)
		}
	}
}

// burst has a follower's store fail for a moment, and until it has refused an entry
// of a leader. Then it must store entries again, and is well for another moment. (The
// leader tries more and more seldom until it does.)
func burst(t *testing.T, follower *Log, bad *badDisk) {
	t.Helper()
	refused := bad.failures.Load()
	bad.logs.Store(true)
	defer bad.logs.Store(false)
	<-time.After(30 * time.Millisecond)
	await(t, "an entry that the follower's store refuses: without one the test shows nothing", func() bool {
		if follower.raft.State() == raft.Leader { // its own entries do not count
			refused = bad.failures.Load()
		}
		return bad.failures.Load() > refused
	})
	bad.logs.Store(false)
	last := follower.raft.LastIndex()
	await(t, "an entry that it stores behind the errors", func() bool { return follower.raft.LastIndex() > last })
	<-time.After(70 * time.Millisecond)
}
