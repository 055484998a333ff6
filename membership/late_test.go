package membership

import (
	"sync/atomic"
	"testing"
	"time"
)

// lateEnough is how long a busy machine may stand still in all while nobody's death is excused by it: less than an
// answer to a probe may take.
const lateEnough = 200 * time.Millisecond

// lateness adds up how much later than it should this process goes on.
type lateness struct{ total atomic.Int64 }

// watchLateness begins to measure until the test's end.
func watchLateness(t *testing.T) *lateness {
	t.Helper()
	l, stop, stopped := &lateness{}, make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		const every = 10 * time.Millisecond
		for before := time.Now(); ; before = time.Now() {
			select {
			case <-stop:
				return
			case <-time.After(every):
			}
			if late := time.Since(before) - 2*every; late > 0 {
				l.total.Add(int64(late))
			}
		}
	}()
	return l
}

// sum returns it so far.
func (l *lateness) sum() time.Duration { return time.Duration(l.total.Load()) }
