package coordtest

import (
	"io"
	"sync"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// Forkable is a [Machine] with a checkpoint behind every entry, whose state, or whose
// history, can be made another one than its entries say.
type Forkable struct {
	*Machine
	// Peers are the addresses of other members, where the backend asks the state.
	Peers func(site string) string

	mu     sync.Mutex
	forked bool // the state is another one
	retold bool // the history is
	points []coord.Checkpoint
}

var _ coord.Checkpointed = (*Forkable)(nil)

// NewForkable returns an empty machine.
func NewForkable() *Forkable { return &Forkable{Machine: NewMachine()} }

// Fork makes the state differ from the next entry on.
func (f *Forkable) Fork() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forked = true
}

// Retell makes the history differ from the next entry on: as if the leader had told
// this member other entries than the rest, which lead to the same state.
func (f *Forkable) Retell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retold = true
}

// Apply implements coord.Machine.
func (f *Forkable) Apply(entry []byte) ([]command.Result, error) {
	results, err := f.Machine.Apply(entry)
	index, hash := f.Entries()
	chain := hash
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.forked {
		hash[0]++
	}
	if f.retold {
		chain[0]++
	}
	f.points = append(f.points, coord.Checkpoint{Entry: index, Chain: chain, Hash: hash, Hashed: index%2 == 0})
	f.points = f.points[max(0, len(f.points)-coord.MaxCheckpoints):]
	return results, err
}

// Restore implements coord.Machine.
func (f *Forkable) Restore(r io.Reader) error {
	err := f.Machine.Restore(r)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.points = nil
	}
	return err
}

// HashFormat implements coord.Checkpointed.
func (f *Forkable) HashFormat() string { return "trace" }

// Checkpoints implements coord.Checkpointed.
func (f *Forkable) Checkpoints() []coord.Checkpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]coord.Checkpoint(nil), f.points...)
}

// Held implements coord.Checkpointed.
func (f *Forkable) Held() (uint64, coord.Snapshot) {
	s, err := f.Snapshot()
	if err != nil {
		s = frozen(nil)
	}
	index, _ := f.Entries()
	return index, s
}

// PeerAddress implements coord.Checkpointed.
func (f *Forkable) PeerAddress(site string) string {
	if f.Peers == nil {
		return ""
	}
	return f.Peers(site)
}
