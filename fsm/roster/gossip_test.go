package roster

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// A key of gossip serves for 30 days of log time. A federation without a roster has none.
func TestGossipKeyGrowsOld(t *testing.T) {
	r := New(RealBounds(10))
	if n := r.NextGossip(0); n != 0 {
		t.Errorf("without a roster, generation %d is due", n)
	}
	r.Found("a", signature.Key{1}, Moment{Index: 1})
	if n := r.NextGossip(0); n != 1 {
		t.Errorf("in a new federation, generation %d is due", n)
	}
	const came = 1000
	key := &command.GossipKey{Generation: 1, Key: [32]byte{1}}
	for _, at := range []Moment{{Index: 2, Ms: came}, {Index: 3, Ms: came + 1}} { // the second is a repeat
		if code := r.SetGossip(key, at); code != command.OK {
			t.Fatal(code)
		}
	}
	if n := r.NextGossip(came + gossipKeyMs - 1); n != 0 {
		t.Errorf("before 30 days have passed, generation %d is due", n)
	}
	if n := r.NextGossip(came + gossipKeyMs); n != 2 {
		t.Errorf("after 30 days, generation %d is due", n)
	}
}
