package replica

import (
	"context"
	"fmt"
	"math"
	"sort"
	"sync"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// maxFeed is how many events a broker holds for those who resume.
const maxFeed = 1 << 16

// Feed holds a broker's latest events and wakes those who wait for more. It
// keeps nothing per reader: a reader that falls behind the oldest event gets
// ErrEventsLost.
type Feed struct {
	mu    sync.RWMutex
	ring  []node.Event // by ID; grows up to maxFeed
	head  int          // of the oldest, once the ring is full
	seq   uint64       // of the newest event
	last  node.EventID // of the newest event, or where the feed begins
	floor node.EventID // events at or before it are not held any more
	// moved is the newest entry that did anything that readers see.
	moved uint64
	// home numbers the newest home event; those of this feed are above first.
	first, home uint64
	declines    declines
	// changed is closed and replaced by every event. rarer is, too, but by submissions only once maxLook have come
	// since: many wait for what happens to tasks, and would be woken by each entry of jobs that wait.
	changed, rarer chan struct{}
	submitted      int // since rarer was closed
}

// newFeed numbers home events after first.
func newFeed(first uint64) *Feed {
	return &Feed{first: first, home: first, changed: make(chan struct{}), rarer: make(chan struct{})}
}

// add takes the events of one entry.
func (f *Feed) add(events []fsm.Event) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	submissions := 0
	for i := range events {
		e := &events[i]
		if e.Kind == fsm.EventJobSubmitted {
			submissions++
		}
		id := node.EventID{Entry: e.Index, N: 1}
		if e.Index == f.last.Entry && f.last.N != math.MaxUint32 {
			id.N = f.last.N + 1
		}
		f.push(node.Event{Event: *e, ID: id, Durability: node.DurableFederation})
		f.declines.handleEvent(e)
	}
	f.moved = events[len(events)-1].Index
	f.signalOf(len(events), submissions)
}

// touch wakes those who wait for a change: an entry did something that has no event.
func (f *Feed) touch(index uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved = index
	f.signal()
}

// AddHome takes events of home jobs.
func (f *Feed) AddHome(events []node.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		f.home++
		e.ID = node.EventID{Entry: f.last.Entry, N: f.last.N, Home: f.home}
		e.Index, e.Time, e.Durability = f.last.Entry, -1, node.DurableSite
		e.QueuedMs, e.AssignedMs, e.StartedMs = -1, -1, -1
		f.push(e)
		f.declines.handleEvent(&e.Event)
	}
	f.signalOf(len(events), 0)
}

// reset starts over after a snapshot replaced the state: what lies between is
// not known.
func (f *Feed) reset(index uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ring, f.head, f.declines = nil, 0, declines{}
	f.last = node.AfterEntry(index)
	f.floor, f.moved = f.last, index
	f.signal()
	f.signalRarer()
}

// signal wakes all readers. REQUIRES: f.mu held.
func (f *Feed) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// signalRarer wakes those who wait for other events than submissions. REQUIRES: f.mu held.
func (f *Feed) signalRarer() {
	close(f.rarer)
	f.rarer, f.submitted = make(chan struct{}), 0
}

// signalOf wakes the readers of events. REQUIRES: f.mu held.
func (f *Feed) signalOf(events, submissions int) {
	f.signal()
	if f.submitted += submissions; events > submissions || f.submitted >= maxLook {
		f.signalRarer()
	}
}

// changedFor returns what is closed when events come that a filter may select. REQUIRES: f.mu held.
func (f *Feed) changedFor(filter *node.EventFilter) <-chan struct{} {
	if len(filter.Kinds) > 0 && !filter.Kinds[fsm.EventJobSubmitted] {
		return f.rarer
	}
	return f.changed
}

// push appends one event, over the oldest if the ring is full. REQUIRES: f.mu
// held.
func (f *Feed) push(e node.Event) {
	f.seq++
	e.Seq = f.seq
	f.last = e.ID
	f.last.Home = 0
	if len(f.ring) < maxFeed {
		f.ring = append(f.ring, e)
		return
	}
	f.floor = f.ring[f.head].ID
	f.ring[f.head] = e
	f.head = (f.head + 1) % maxFeed
}

// at returns the i-th oldest event. REQUIRES: f.mu held.
func (f *Feed) at(i int) *node.Event { return &f.ring[(f.head+i)%len(f.ring)] }

// seek returns the position of the first event after a place, false if events
// after it are not held any more. REQUIRES: f.mu held.
func (f *Feed) seek(from node.EventID) (int, bool) {
	if c := from.CompareLog(f.floor); c < 0 || c == 0 && from.Home < f.floor.Home {
		return 0, false
	}
	i := sort.Search(len(f.ring), func(i int) bool { return f.at(i).ID.CompareLog(from) > 0 })
	for i > 0 && f.at(i-1).ID.Home > from.Home {
		i--
	}
	return i, true
}

// strange reports whether a home number is of another start of the broker, or of
// another broker: what happened at home since then is not held. REQUIRES: f.mu
// held.
func (f *Feed) strange(home uint64) bool { return home > 0 && (home < f.first || home > f.home) }

// HomeNumbers returns the number after which the home events of this start of the
// broker begin, and the newest one's.
func (f *Feed) HomeNumbers() (first, newest uint64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.first, f.home
}

// Now returns the place after all that has happened so far.
func (f *Feed) Now() node.EventID {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.now()
}

// now is Now. REQUIRES: f.mu held.
func (f *Feed) now() node.EventID {
	if n := len(f.ring); n > 0 {
		return f.at(n - 1).ID
	}
	return f.last
}

// Moved returns the newest entry that caused an event or changed what is pending or decided among the members, and the
// number of the newest home event.
func (f *Feed) Moved() (entry, home uint64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.moved, f.home
}

// AwaitMove returns when something happened after an entry or, at home, after a
// number; nil then, else the context's error.
func (f *Feed) AwaitMove(ctx context.Context, entry, home uint64) error {
	for {
		f.mu.RLock()
		moved, changed := f.moved > entry || f.home > home, f.changed
		f.mu.RUnlock()
		if moved {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("await a change: %w", context.Cause(ctx))
		}
	}
}
