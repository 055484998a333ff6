package node

import (
	"errors"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/executor"
)

// declineClass is a kind of reason for which a task is handed back before it runs.
// The set is closed, so that it can be a metric's label.
type declineClass uint8

const (
	declinedBusy    declineClass = iota // no room now, or as many tasks as there may be
	declinedUnfit                       // the handler will never run it: its kind, its size, its image
	declinedUnbound                     // of another site, and nothing would end it for certain
	declinedLate                        // too little time was left before its fence
	declinedGone                        // the machine is there no more
	declinedClosed                      // the site leaves, or its disk is full
	declinedTrouble                     // the handler's own: it could not start anything
	declineClasses
)

var declineNames = [declineClasses]string{"busy", "unfit", "unbound", "late", "gone", "closed", "trouble"}

// soon reports whether the site may have room for such a task in a moment.
func (d declineClass) soon() bool {
	return d == declinedBusy || d == declinedLate || d == declinedTrouble
}

// classOf is that of a handler's refusal.
func classOf(err error) declineClass {
	switch {
	case errors.Is(err, executor.ErrUnfit):
		return declinedUnfit
	case errors.Is(err, executor.ErrBusy):
		return declinedBusy
	case errors.Is(err, executor.ErrLate):
		return declinedLate
	}
	return declinedTrouble
}

// lossCause says how an attempt was lost; the set is closed, too.
type lossCause uint8

const (
	lostFenced   lossCause = iota // ended at its fence
	lostVanished                  // its handler lost track of it
	lostStopped                   // stopped though nobody asked, as together with the broker
	lossCauses
)

var lossNames = [lossCauses]string{"fenced", "vanished", "stopped"}

// tallies count since the start of the broker, by handler; the loop counts,
// Metrics reads.
type tallies struct {
	mu       sync.Mutex
	declined map[string]*[declineClasses]uint64
	lost     map[string]*[lossCauses]uint64
}

func newTallies() *tallies {
	return &tallies{declined: map[string]*[declineClasses]uint64{}, lost: map[string]*[lossCauses]uint64{}}
}

// at is a handler's part of a tally; "" is one that is not known any more.
func at[T any](by map[string]*T, handler string) *T {
	if handler == "" {
		handler = "unknown"
	}
	if by[handler] == nil {
		by[handler] = new(T)
	}
	return by[handler]
}

func (t *tallies) decline(handler string, class declineClass) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at(t.declined, handler)[class]++
}

// end counts an attempt's end if it is a loss.
func (t *tallies) end(handler string, r executor.Result, asked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case r.Cause == executor.Fenced:
		at(t.lost, handler)[lostFenced]++
	case r.Cause == executor.Vanished:
		at(t.lost, handler)[lostVanished]++
	case r.Cause == executor.Stopped && !asked:
		at(t.lost, handler)[lostStopped]++
	}
}

// Tally is a count since the broker's start.
type Tally struct {
	Handler, Kind string
	Count         uint64
}

// list shows both tallies, zeros of the handlers there are too, by handler.
func (t *tallies) list(handlers []executor.Handler) (declined, lost []Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range handlers {
		at(t.declined, h.Name())
		at(t.lost, h.Name())
	}
	for _, name := range sortedKeys(t.declined) {
		for class, n := range t.declined[name] {
			declined = append(declined, Tally{name, declineNames[class], n})
		}
	}
	for _, name := range sortedKeys(t.lost) {
		for cause, n := range t.lost[name] {
			lost = append(lost, Tally{name, lossNames[cause], n})
		}
	}
	return declined, lost
}

func sortedKeys[T any](by map[string]T) []string {
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
