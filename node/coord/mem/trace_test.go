package mem

import (
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

// TestTrace: the same stamped batches give the same state as on any other backend.
func TestTrace(t *testing.T) {
	g := New(func() int64 { return 0 })
	states := map[string]*coordtest.TraceState{}
	for _, s := range []string{"a", "b", "cc"} {
		states[s] = coordtest.NewTraceState()
		if _, err := g.Open(s, states[s]); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range coordtest.Trace(coordtest.TraceTerm) {
		g.mu.Lock()
		g.entries = append(g.entries, entry{data: b})
		g.deliver()
		g.mu.Unlock()
	}
	for _, s := range states {
		s.Check(t, coordtest.TraceTerm)
	}
}
