package raftlog

import (
	"context"

	"github.com/hashicorp/raft"
)

// outcome waits for a change of the group, or until ctx ends, as it does with the log: one that raft has just handed to
// its state machine when it shuts down is never answered, and whoever waited for it was waited for by Close.
func outcome(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }() // it stays if there is no answer
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return raft.ErrRaftShutdown
	}
}
