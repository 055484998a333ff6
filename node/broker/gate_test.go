package broker

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// While a publication is being synced, submissions wait and everything else
// goes on; what waited then goes first, in its order.
func TestSubmitGate(t *testing.T) {
	sub := func(n int) core.Event { return core.SubmitEvent{Reqs: make([]node.Request, n)} }
	sizes := func(evs []core.Event) (n []int) {
		for _, ev := range evs {
			if s, ok := ev.(core.SubmitEvent); ok {
				n = append(n, len(s.Reqs))
			} else {
				n = append(n, 0)
			}
		}
		return n
	}
	var g submitGate
	if got := sizes(g.pass([]core.Event{sub(1), core.TickEvent{}})); !slices.Equal(got, []int{1, 0}) {
		t.Fatalf("an open gate let %v through, want all", got)
	}
	g.syncing = true
	for _, step := range []struct{ in, want []core.Event }{
		{[]core.Event{sub(2), core.TickEvent{}, sub(3)}, []core.Event{core.TickEvent{}}},
		{[]core.Event{sub(4)}, nil},
	} {
		if got, want := sizes(g.pass(step.in)), sizes(step.want); !slices.Equal(got, want) {
			t.Fatalf("a closed gate let %v through, want %v", got, want)
		}
	}
	got := sizes(g.pass(append(g.open(nil), sub(5))))
	if want := []int{2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Fatalf("the opened gate let %v through, want %v", got, want)
	}
	if got := g.open(nil); len(got) != 0 {
		t.Fatalf("opened again, the gate gave out %d events twice", len(got))
	}
}

// A broker that has just started takes nothing before the federation has taken
// it in: its data may be an old copy.
func TestSubmitGateAfterTheStart(t *testing.T) {
	g := submitGate{early: true}
	if got := g.pass([]core.Event{core.SubmitEvent{}, core.TickEvent{}}); len(got) != 1 {
		t.Fatalf("%d events passed before the federation was found, want the tick", len(got))
	}
	if got := g.open(nil); len(got) != 0 {
		t.Fatalf("a sync let %d submissions through", len(got))
	}
	got := g.pass([]core.Event{core.LeaseEvent{}, core.SubmitEvent{}})
	if _, lease := got[0].(core.LeaseEvent); len(got) != 3 || !lease {
		t.Fatalf("with the lease pass %v, want it first and both submissions", got)
	}
}
