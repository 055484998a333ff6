package raftlog

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// unanswered is a change of the group that raft answers when the channel is closed.
type unanswered chan struct{}

// Error implements raft.Future.
func (u unanswered) Error() error {
	<-u
	return nil
}

// TestUnansweredChangeEndsWithTheLog: a log that closes waits for no change of the group that raft has forgotten. It
// did when a site was made a voter in the moment in which all members stopped.
func TestUnansweredChangeEndsWithTheLog(t *testing.T) {
	l := newCluster(t).open(t, "a")
	answered, never := make(unanswered), make(unanswered)
	defer close(never)
	close(answered)
	if err := outcome(l.Ctx, answered); err != nil {
		t.Errorf("a change that is answered: %v", err)
	}
	ended := make(chan error)
	l.WG.Go(func() { ended <- outcome(l.Ctx, never) })
	go func() { _ = l.Close() }()
	if err := <-ended; !errors.Is(err, raft.ErrRaftShutdown) {
		t.Errorf("one that is not, when the log closes: %v", err)
	}
	closed(t, l)
}
