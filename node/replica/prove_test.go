package replica

import (
	"testing"
	"testing/synctest"
	"time"
)

// The goroutine that verifies ahead outlives an entry, so that its stack does not grow with each, and ends when nothing
// comes any more; the next entry has a new one.
func TestVerifyingAheadLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewReplica()
		running := func() bool {
			synctest.Wait()
			r.ahead.mu.Lock()
			defer r.ahead.mu.Unlock()
			if len(r.ahead.entries) > 0 || r.ahead.bytes != 0 {
				t.Errorf("%d entries of %d bytes are left", len(r.ahead.entries), r.ahead.bytes)
			}
			return r.ahead.running
		}
		for range 2 {
			r.Prepare([]byte("no batch"))
			if !running() {
				t.Fatal("nobody takes the next entry")
			}
			<-time.After(lingers + lingers/2)
			r.Prepare([]byte("another one"))
			if <-time.After(lingers); !running() {
				t.Fatal("it ended beside entries that come")
			}
			if <-time.After(2 * lingers); running() {
				t.Fatal("it has not ended")
			}
		}
	})
}
