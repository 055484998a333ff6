package trouble

import (
	"errors"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node"
)

// DeclineClass is a kind of reason for which a task is handed back before it runs.
// The set is closed, so that it can be a metric's label. To add one: a constant, its name in
// declineNames, and the core's decline (core/reconcile.go) where the task is judged.
type DeclineClass uint8

// Classes of reasons.
const (
	DeclinedBusy    DeclineClass = iota // no room now, or as many tasks as there may be
	DeclinedUnfit                       // the handler will never run it: its kind, its size, its image
	DeclinedUnbound                     // of another site, and nothing would end it for certain
	declinedLate                        // too little time was left before its fence
	DeclinedGone                        // the machine is there no more
	DeclinedClosed                      // the site leaves, its disk is full, or its state is unsure
	DeclinedTrouble                     // the handler's own: it could not start anything
	DeclinedSealed                      // its owner gave no key, or could not be asked for it
	DeclinedFiles                       // its files could not be had: its owner did not give them, or there is no room
	declineClasses
)

var declineNames = [declineClasses]string{"busy", "unfit", "unbound", "late", "gone", "closed", "trouble", "sealed", "files"}

// Soon reports whether the site may have room for such a task in a moment.
func (d DeclineClass) Soon() bool {
	return d == DeclinedBusy || d == declinedLate || d == DeclinedTrouble
}

// ClassOf returns that of a handler's refusal.
func ClassOf(err error) DeclineClass {
	switch {
	case errors.Is(err, executor.ErrUnfit):
		return DeclinedUnfit
	case errors.Is(err, executor.ErrBusy):
		return DeclinedBusy
	case errors.Is(err, executor.ErrLate):
		return declinedLate
	}
	return DeclinedTrouble
}

// lossCause says how an attempt was lost; the set is closed, too.
type lossCause uint8

const (
	lostFenced   lossCause = iota // ended at its fence
	lostVanished                  // its handler lost track of it
	lostStopped                   // stopped though nobody asked, as together with the broker
	lostOrphaned                  // what watched it was gone without a word
	lossCauses
)

var lossNames = [lossCauses]string{"fenced", "vanished", "stopped", "orphaned"}

// Tallies count since the start of the broker, by handler; the loop counts,
// Metrics reads.
type Tallies struct {
	mu       sync.Mutex
	declined map[string]*[declineClasses]uint64
	lost     map[string]*[lossCauses]uint64
}

// NewTallies returns tallies of nothing yet.
func NewTallies() *Tallies {
	return &Tallies{declined: map[string]*[declineClasses]uint64{}, lost: map[string]*[lossCauses]uint64{}}
}

// at returns a handler's part of a tally; "" is one that is not known any more.
func at[T any](by map[string]*T, handler string) *T {
	if handler == "" {
		handler = "unknown"
	}
	if by[handler] == nil {
		by[handler] = new(T)
	}
	return by[handler]
}

// Decline counts a task that was handed back.
func (t *Tallies) Decline(handler string, class DeclineClass) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at(t.declined, handler)[class]++
}

// End counts an attempt's end if it is a loss.
func (t *Tallies) End(handler string, r executor.Result, asked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case r.Cause == executor.Fenced:
		at(t.lost, handler)[lostFenced]++
	case r.Cause == executor.Vanished:
		at(t.lost, handler)[lostVanished]++
	case r.Cause == executor.Stopped && !asked:
		at(t.lost, handler)[lostStopped]++
	case r.Cause == executor.Orphaned:
		at(t.lost, handler)[lostOrphaned]++
	}
}

// List shows both tallies, zeros of the handlers there are too, by handler.
func (t *Tallies) List(handlers []executor.Handler) (declined, lost []node.Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range handlers {
		at(t.declined, h.Name())
		at(t.lost, h.Name())
	}
	for _, name := range sortedKeys(t.declined) {
		for class, n := range t.declined[name] {
			declined = append(declined, node.Tally{Handler: name, Kind: declineNames[class], Count: n})
		}
	}
	for _, name := range sortedKeys(t.lost) {
		for cause, n := range t.lost[name] {
			lost = append(lost, node.Tally{Handler: name, Kind: lossNames[cause], Count: n})
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
