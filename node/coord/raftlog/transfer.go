package raftlog

import (
	"sync"

	"github.com/hashicorp/raft"
)

// leadershipTransfers are raft's transfers of the leadership that are under way. Raft answers
// one as soon as its main goroutine looks at it, or an election timeout later; but
// one that waits for that goroutine when raft shuts down is never answered. So raft
// is shut down after end. The zero value is ready to use.
type leadershipTransfers struct {
	mu    sync.Mutex
	wg    sync.WaitGroup // Add with mu held
	ended bool           // Invariant: none begins once it is true.
}

// begin starts a transfer. Its result comes on the channel; nobody has to take it.
func (t *leadershipTransfers) begin(start func() raft.Future) <-chan error {
	done := make(chan error, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		done <- raft.ErrRaftShutdown
		return done
	}
	t.wg.Go(func() { done <- start().Error() })
	return done
}

// end waits for the transfers under way and refuses new ones. If raft's main
// goroutine waits for a disk, so does end, as raft's shutdown would.
func (t *leadershipTransfers) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.wg.Wait()
}
