package relay

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/signature"
)

// A site's calls are ordered before its signature is verified, until it has sent a wrong one: for a minute then, they
// wait for that, and wrong ones are rejected. A connection with many of them ends.
func TestWrongSignaturesCastDoubt(t *testing.T) {
	a := authorOf(t, "a")
	c := &Calls{by: a, seq: newSequencer(&quick{}, a, Timing{}, Hooks{}, func() {})}
	s := &session{c: c, site: "b", kick: make(chan struct{}, 1)}
	var outcomes []Outcome
	order := func(right bool) (ordered bool, err error) {
		it, before := sent(t, "b", 1), c.seq.queue.lane(0, "b").load.calls
		it.done = func(o Outcome, _ uint64) { outcomes = append(outcomes, o) }
		if !right {
			it.signed.Signature = signature.Signature{}
		}
		err = s.order(&it)
		return c.seq.queue.lane(0, "b").load.calls > before, err
	}
	for i, step := range []struct{ right, ordered bool }{{true, true}, {false, true}, {false, false}, {true, true}} {
		if ordered, err := order(step.right); ordered != step.ordered || err != nil {
			t.Errorf("step %d: ordered %v, %v", i, ordered, err)
		}
	}
	if !slices.Equal(outcomes, []Outcome{rejected}) {
		t.Errorf("outcomes %v", outcomes)
	}
	if now := time.Now(); !c.doubts.has("b", now) || c.doubts.has("a", now) || c.doubts.has("b", now.Add(doubtFor+time.Second)) {
		t.Error("doubt is cast on others, or does not end")
	}
	var err error
	for i := 0; err == nil && i < 2*maxUnsigned; i++ {
		_, err = order(false)
	}
	if !errors.Is(err, errFrame) || s.unsigned != maxUnsigned+1 {
		t.Errorf("after %d wrong bundles: %v", s.unsigned, err)
	}
}
