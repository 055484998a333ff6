package main

import (
	"context"
	"sync"
	"time"
)

const (
	// compareFor so long brokers are asked again until they show the same entry.
	compareFor   = 2 * time.Second
	compareEvery = 100 * time.Millisecond
)

// compareStates asks all brokers that no fault holds back for their states, all at
// once, until they show that of one entry: it moves on while clients write.
func (r *run) compareStates(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, compareFor)
	defer cancel()
	for sleep(ctx, compareEvery) == nil {
		if r.sameEntry(ctx) {
			return
		}
	}
}

// sameEntry reports whether all brokers that answered showed the same entry.
func (r *run) sameEntry(ctx context.Context) bool {
	members := r.honest()
	shown := make([]uint64, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		if !r.faults.on(m) && m.up() {
			all.Go(func() { shown[i] = r.seeState(ctx, m) })
		}
	}
	all.Wait()
	first := uint64(0)
	for _, index := range shown {
		if first == 0 {
			first = index
		}
		if index != 0 && index != first {
			return false
		}
	}
	return first != 0
}

// seeState takes a look at a broker's state, and returns its entry, 0 for none.
func (r *run) seeState(ctx context.Context, m *member) uint64 {
	st, err := m.Status(ctx)
	if err != nil || st.StateHash.Hash == "" || m.forked.Load() {
		return 0
	}
	r.mu.Lock()
	found := r.hashes.See(m.Name, st.StateHash.Index, st.StateHash.Hash)
	r.mu.Unlock()
	r.blame(found...)
	return st.StateHash.Index
}
