package transport

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// TestProposalsOverlapOnTheWire: raft's own replication has many entries in flight to each follower while no answer has
// come back, and what is committed reaches the state of all.
func TestProposalsOverlapOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{delay: func() time.Duration { return roundTrip / 2 }}
		r := openRafts(t, m, "a", "b", "cc")
		_, lead := r.leader()
		if err := lead.Apply([]byte("first"), 0).Error(); err != nil {
			t.Fatal(err)
		}
		<-time.After(20 * roundTrip) // both followers have a pipe
		most := 0
		begun := time.Now()
		var futures []raft.ApplyFuture
		for i := range 64 {
			futures = append(futures, lead.Apply([]byte(fmt.Sprint(i)), 0))
			<-time.After(time.Millisecond)
			most = max(most, onTheWire(t, lead.trans))
		}
		for _, f := range futures {
			if err := f.Error(); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begun); most < 8 || took > 64*time.Millisecond+roundTrip+5*pipePace {
			t.Errorf("%d appends in flight at most; 64 proposals in 64 ms took %v with round trips of %v", most, took, roundTrip)
		}
		r.stopAll()
	})
}

// onTheWire returns how many requests are in flight to the follower that has most of them. All have a pipe.
func onTheWire(t *testing.T, lead *Transport) (most int) {
	t.Helper()
	lead.mu.Lock()
	defer lead.mu.Unlock()
	for id, f := range lead.peers {
		if f.pipe == nil {
			t.Fatalf("no pipe to %s", id)
		}
		most = max(most, f.pipe.inFlight())
	}
	return most
}

// TestRaftUnderFaults: whatever happens to connections, stores, members and terms, nothing that was acknowledged is
// lost, all members have one history, and once the faults are over nobody is stuck.
func TestRaftUnderFaults(t *testing.T) {
	runs := uint64(4)
	if testing.Short() {
		runs = 1
	}
	for seed := range runs {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { underFaults(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func underFaults(t *testing.T, rnd *rand.Rand) {
	sites := []string{"a", "b", "cc", "no-d"}
	f := newFaults(rnd)
	m := &members{
		delay: f.delay, refuse: f.refuses, quiet: Quiet{For: 2 * time.Second, Silence: 4 * time.Second},
	}
	r := openRafts(t, m, sites...)
	r.leader()
	stop := make(chan struct{})
	done := r.propose(16, stop)
	for range 25 {
		f.strike(r, sites[f.draw(int64(len(sites)))])
	}
	f.set(func() { f.most = 50 * time.Millisecond })
	<-time.After(5 * time.Second)
	close(stop)
	acked := done()
	_, lead := r.leader()
	if err := lead.Barrier(time.Minute).Error(); err != nil {
		t.Errorf("no entry of the leader's after the faults: %v", err)
	}
	<-time.After(10 * time.Second)
	want := lead.state.applied()
	for _, s := range sites {
		if got := r.node(s).state.applied(); !slices.Equal(got, want) {
			t.Errorf("%s has applied %d, the leader %d: stuck, or another history", s, len(got), len(want))
		}
	}
	there := map[string]bool{}
	for _, what := range want {
		there[what] = true
	}
	for _, what := range acked {
		if !there[what] {
			t.Errorf("%s was acknowledged and is lost", what)
		}
	}
	t.Logf("%d acknowledged, %d applied", len(acked), len(want))
	r.stopAll()
}
