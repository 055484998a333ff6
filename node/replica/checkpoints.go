package replica

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
)

// checkpointHeld is how long the state of a checkpoint is kept beside the present
// one: members that differ are found meanwhile, and show each other this one. The
// memory that it costs is that of the pages which Apply has copied since.
const checkpointHeld = 20 * time.Second

// checkpoints are a replica's; see KeepCheckpoints. Replica.mu guards them.
type checkpoints struct {
	on   bool
	ring checkpointRing
	// held is the frozen state of the newest one until heldUntil, nil = none.
	held      *fsm.Frozen
	heldUntil time.Time
	// hashing: one is being hashed; restores tells whether it is of this state.
	hashing  bool
	restores int
	// level is the lowest that this machine can afford; took is how long the last
	// hash took. Before rest none is begun, which holds a replay to a few percent.
	level int
	took  time.Duration
	rest  time.Time
}

var _ coord.Checkpointed = (*Replica)(nil)

// KeepCheckpoints has the replica remember its state's hash now and then, for
// comparisons with other replicas. Which entries are hashed depends on log time
// alone, how many of them on what a hash costs here. Call it before the first
// Apply.
func (r *Replica) KeepCheckpoints() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.points.on = true
}

// checkpoint begins a checkpoint if the entry that was applied is one; before is
// the log time before it. The hash is computed concurrently with Apply. REQUIRES: r.mu held.
func (r *Replica) checkpoint(before int64) {
	c := &r.points
	if !c.on {
		return
	}
	level := crossedLevel(before, r.state.Time())
	now := time.Now()
	if c.held != nil && now.After(c.heldUntil) {
		c.held = nil
	}
	if level < c.level || c.hashing || now.Before(c.rest) {
		return
	}
	c.hashing = true
	frozen, restores := r.state.Snapshot(), c.restores
	go func() {
		begun := time.Now()
		hash := frozen.Hash()
		took := time.Since(begun)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.points.hashed(frozen, hash, level, took, restores)
	}()
}

// hashed remembers a checkpoint unless the state was replaced meanwhile. One slow
// hash says more of the machine's load than of the state: the shorter of two
// counts.
func (c *checkpoints) hashed(frozen *fsm.Frozen, hash [32]byte, level int, took time.Duration, restores int) {
	now := time.Now()
	cost := took
	if c.took > 0 {
		cost = min(took, c.took)
	}
	c.took = took
	c.level, c.rest, c.hashing = affordableLevel(cost), now.Add(checkpointShare/4*took), false
	if restores != c.restores {
		return
	}
	c.ring.add(checkpointMark{coord.Checkpoint{Entry: frozen.Index(), Hash: hash}, level})
	c.held, c.heldUntil = frozen, now.Add(checkpointHeld)
}

// replaced forgets the checkpoints of a state that is no more.
func (c *checkpoints) replaced() {
	c.ring, c.held = checkpointRing{}, nil
	c.restores++
}

// HashFormat implements coord.Checkpointed.
func (r *Replica) HashFormat() string { return fsm.HashFormat }

// Checkpoints implements coord.Checkpointed.
func (r *Replica) Checkpoints() []coord.Checkpoint {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.points.ring.list()
}

// Held implements coord.Checkpointed.
func (r *Replica) Held() (entry uint64, s coord.Snapshot) {
	r.mu.Lock() // copy-on-write marks are set in the state
	defer r.mu.Unlock()
	frozen := r.points.held
	if frozen == nil {
		frozen = r.state.Snapshot()
	}
	return frozen.Index(), heldState{frozen}
}

// heldState is a frozen state that several may hold: the last one who lets it go
// frees it.
type heldState struct{ *fsm.Frozen }

// Release implements coord.Snapshot.
func (heldState) Release() {}

// PeerAddress implements coord.Checkpointed.
func (r *Replica) PeerAddress(site string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	v, _ := r.state.Site(site)
	return v.Peer
}
