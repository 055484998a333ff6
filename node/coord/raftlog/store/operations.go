package store

import (
	"sync"
	"time"
)

// operations are the writes under way.
type operations struct {
	mu    sync.Mutex
	next  uint64
	begun map[uint64]operation
}

type operation struct {
	what string
	at   time.Time
}

// begin notes a write; the function returned ends it.
func (o *operations) begin(what string, at time.Time) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun == nil {
		o.begun = map[uint64]operation{}
	}
	o.next++
	id := o.next
	o.begun[id] = operation{what, at}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.begun, id)
	}
}

// Oldest returns the write that is under way for longest, 0 for none.
func (s *Store) Oldest(now time.Time) (what string, took time.Duration) {
	s.ops.mu.Lock()
	defer s.ops.mu.Unlock()
	for _, op := range s.ops.begun {
		if d := now.Sub(op.at); d > took {
			what, took = op.what, d
		}
	}
	return what, took
}
