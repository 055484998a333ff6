package replica

import (
	"crypto/sha256"

	"github.com/cloudshare/cloudshare/node/coord"
)

// History keeps what has led to the state, so that others can go through it again. It is called while Apply waits: its
// methods must not block, and none of them can fail.
type History interface {
	// Append takes an entry, its number, and the head of the chain before and behind it. An entry may come again after
	// a restart, and some may be missing. The bytes are the caller's again when it returns.
	Append(number uint64, before, behind Chain, entry []byte)
	// Checkpoint is told of a checkpoint and its level: members agree at which entries they lie, and those of higher
	// levels are fewer. It reports whether the state there is wanted.
	Checkpoint(number uint64, level int) (wanted bool)
	// Begin takes the state of the checkpoint it was just told of.
	Begin(number uint64, chain Chain, state coord.Snapshot)
}

// KeepHistory has a history kept from the next checkpoint on, or from the first entry. Call it before the first Apply,
// and KeepCheckpoints, too.
func (r *Replica) KeepHistory(h History) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = h
}

// beginHistory has a history begin before the first entry. REQUIRES: r.mu held.
func (r *Replica) beginHistory() {
	if r.history != nil && r.state.Index() == 0 {
		r.checkpointHistory(maxCheckpointLevel)
	}
}

// checkpointHistory tells the history of a checkpoint, which is now. REQUIRES: r.mu held.
func (r *Replica) checkpointHistory(level int) {
	if r.history != nil && r.history.Checkpoint(r.state.Index(), level) {
		r.history.Begin(r.state.Index(), r.chain, r.freeze())
	}
}

// extendChain notes an entry that was applied. REQUIRES: r.mu held.
func (r *Replica) extendChain(of [sha256.Size]byte, entry []byte) {
	before := r.chain
	r.chain = before.Next(of)
	if r.history != nil {
		r.history.Append(r.state.Index(), before, r.chain, entry)
	}
}
