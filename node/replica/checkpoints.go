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
	// counted are the checkpoints between those.
	counted checkpointRing
	// held is the frozen state of the newest one that was hashed, until heldUntil; zero = none.
	held      frozen
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

// KeepCheckpoints has the replica remember the head of its chain now and then, and
// its state's hash, for comparisons with other replicas. Which entries these are
// depends on log time and their numbers alone, of how many the state is hashed on what
// that costs here. Call it before the first Apply.
func (r *Replica) KeepCheckpoints() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.points.on = true
}

// checkpoint notes a checkpoint if the entry that was applied is one; before is
// the log time before it. REQUIRES: r.mu held.
func (r *Replica) checkpoint(before int64) {
	c := &r.points
	if !c.on {
		return
	}
	now := coord.Checkpoint{Entry: r.state.Index(), Chain: r.chain}
	level := crossedLevel(before, r.state.Time())
	if level >= 0 {
		c.ring.add(checkpointMark{now, level})
		r.checkpointHistory(level)
	} else if n := countedLevel(now.Entry); n >= 0 {
		c.counted.add(checkpointMark{now, n})
	}
	r.hashIfDue(level)
}

// hashIfDue has the state's hash computed concurrently with Apply, if a checkpoint of that level is there to be hashed.
// REQUIRES: r.mu held.
func (r *Replica) hashIfDue(level int) {
	c := &r.points
	now := time.Now()
	if c.held.Frozen != nil && now.After(c.heldUntil) {
		c.held = frozen{}
	}
	if level < 0 || level < c.level || c.hashing || now.Before(c.rest) {
		return
	}
	c.hashing = true
	copied, restores := r.freeze(), c.restores
	go func() {
		begun := time.Now()
		hash := copied.Hash()
		took := time.Since(begun)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.points.hashed(copied, hash, took, restores)
	}()
}

// hashed remembers a checkpoint's hash unless the state was replaced meanwhile. One slow
// hash says more of the machine's load than of the state: the shorter of two
// counts.
func (c *checkpoints) hashed(copied frozen, hash [32]byte, took time.Duration, restores int) {
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
	c.ring.hashed(copied.Index(), hash)
	c.held, c.heldUntil = copied, now.Add(checkpointHeld)
}

// replaced forgets the checkpoints of a state that is no more.
func (c *checkpoints) replaced() {
	c.ring, c.counted, c.held = checkpointRing{}, checkpointRing{}, frozen{}
	c.restores++
}

// HashFormat implements coord.Checkpointed.
func (r *Replica) HashFormat() string { return fsm.HashFormat }

// Checkpoints implements coord.Checkpointed.
func (r *Replica) Checkpoints() []coord.Checkpoint {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return byEntry(&r.points.ring, &r.points.counted)
}

// Held implements coord.Checkpointed.
func (r *Replica) Held() (entry uint64, s coord.Snapshot) {
	r.mu.Lock() // copy-on-write marks are set in the state
	defer r.mu.Unlock()
	held := r.points.held
	if held.Frozen == nil {
		held = r.freeze()
	}
	return held.Index(), heldState{held}
}

// heldState is a frozen state that several may hold: the last one who lets it go
// frees it.
type heldState struct{ frozen }

// Release implements coord.Snapshot.
func (heldState) Release() {}

// PeerAddress implements coord.Checkpointed.
func (r *Replica) PeerAddress(site string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	v, _ := r.state.Site(site)
	return v.Peer
}
