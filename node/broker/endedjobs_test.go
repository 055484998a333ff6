package broker

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// countingBook has many jobs that have not ended, and counts how often it is asked for all of them.
type countingBook struct {
	open []uint64
	asks atomic.Int64
}

func (b *countingBook) Has(num uint64) bool { return slices.Contains(b.open, num) }

func (b *countingBook) Unended() []uint64 {
	b.asks.Add(1)
	return b.open
}

// TestAcceptedJobsAreLookedAtAlone: a job that is accepted has no others looked up. All that waited were, once for each
// task that a workflow engine made, by the core's goroutine: with thousands open that took a core.
func TestAcceptedJobsAreLookedAtAlone(t *testing.T) {
	s := startSites(t, 1)[0]
	waits := s.accept(t, `{"command":["true"],"sites":{"only":["nowhere"]}}`).ID
	p := newProcess(zerolog.Nop(), nil)
	book := &countingBook{open: []uint64{waits.Num}}
	told := make(chan uint64, 10)
	w := &endedJobs{process: p, b: s.Broker, book: book, kept: make(chan struct{}, 1), take: func(nums []uint64) error {
		for _, num := range nums {
			told <- num
		}
		return nil
	}}
	p.goroutine(w.watch)
	const ended = 1000 // nobody knows it: so it has
	const keeps = 50
	for range keeps {
		w.keep(waits.Num)
		w.keep(ended)
		if num := <-told; num != ended {
			t.Fatalf("job %s has ended", command.JobID{Site: s.name, Num: num})
		}
	}
	p.cancel(nil)
	p.wg.Wait()
	if asks := book.asks.Load(); asks > keeps/2 { // now and then they are
		t.Errorf("all were looked up %d times for %d jobs", asks, keeps)
	}
}

// TestTooManyAcceptedAreLookedUpWithAll: what is not remembered one by one is not forgotten.
func TestTooManyAcceptedAreLookedUpWithAll(t *testing.T) {
	w := &endedJobs{kept: make(chan struct{}, 1)}
	for num := range uint64(mostAccepted + 1) {
		w.keep(num)
	}
	if nums, more := w.takeKept(); len(nums) != mostAccepted || !more {
		t.Errorf("%d are remembered, more %v", len(nums), more)
	}
	if nums, more := w.takeKept(); len(nums) != 0 || more {
		t.Errorf("taken, and still %d are there, more %v", len(nums), more)
	}
}
