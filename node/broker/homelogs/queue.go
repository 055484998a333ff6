package homelogs

import (
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
)

const (
	// maxQueue bounds what is remembered of the feed's news for each site; what has no room, the sweep finds.
	maxQueue = 1 << 16
	// maxTries is how often an attempt is asked for in vain: one at which its site breaks off each time must not keep
	// all others there.
	maxTries = 8
)

// want is an output that is to come.
type want struct {
	asklogs.Ref
	token uint64    // 0 = not known
	ended time.Time // zero = not known
	tries uint8
}

// queue is what is to come of one site.
type queue struct {
	mu    sync.Mutex
	wants []want // the oldest first; guarded by mu
	due   bool   // the state is to be looked through; guarded by mu
	// wake has an element if there is something to do.
	wake chan struct{}
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// add takes news; it never blocks.
func (q *queue) add(w ...want) {
	q.mu.Lock()
	if room := maxQueue - len(q.wants); len(w) > room {
		w, q.due = w[:max(room, 0)], true
	}
	q.wants = append(q.wants, w...)
	q.mu.Unlock()
	coord.Signal(q.wake)
}

// sweep has the state looked through.
func (q *queue) sweep() {
	q.mu.Lock()
	q.due = true
	q.mu.Unlock()
	coord.Signal(q.wake)
}

// take returns the next of them, but those that have ended before a moment: they would not stay.
func (q *queue) take(most int, before time.Time) (batch []want) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for ; n < len(q.wants) && len(batch) < most; n++ {
		if w := q.wants[n]; w.ended.IsZero() || w.ended.After(before) {
			batch = append(batch, w)
		}
	}
	if q.wants = q.wants[n:]; len(q.wants) == 0 {
		q.wants = nil // a burst's room
	}
	return batch
}

// takeSweep returns whether the state is to be looked through, once.
func (q *queue) takeSweep() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := q.due
	q.due = false
	return due
}

// putBack has some wait for another try, before all others. It returns how many were given up.
func (q *queue) putBack(list []want) (dropped int) {
	kept := make([]want, 0, len(list))
	for _, w := range list {
		if w.tries < maxTries {
			kept = append(kept, w)
		}
	}
	q.mu.Lock()
	q.wants = append(kept, q.wants...)
	q.mu.Unlock()
	return len(list) - len(kept)
}

// len returns how many wait.
func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.wants)
}
