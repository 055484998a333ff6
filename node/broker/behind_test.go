package broker

import (
	"context"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/core"
)

// TestHungJournalDoesNotHoldTheLoop: while the disk hangs, leases, fences and
// stops are handled as ever; what waits for its record goes out, in order, when
// the disk is back.
func TestHungJournalDoesNotHoldTheLoop(t *testing.T) {
	s := startSites(t, 1)[0]
	release := hold(t, s.journal) // no commit gets through
	const turns = 3 * maxGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var order []int
	done := make(chan struct{})
	for i := range turns { // each leaves a record to be synced
		s.post(core.DrainEvent{Done: func() {
			if order = append(order, i); len(order) == turns {
				close(done)
			}
		}})
		if err := s.query(ctx, func(*core.Core) {}); err != nil {
			t.Fatalf("after %d turns the loop does not answer: %v", i, err)
		}
	}
	release()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("not everything went out")
	}
	for i, was := range order {
		if i != was {
			t.Fatalf("turn %d went out as number %d", was, i)
		}
	}
}
