package node

import (
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
)

// TestCancelsWithoutQuorumAreBounded: cancellations that the order does not take are
// refused beyond a bound, and those of one job share a command. 60,000 of them once
// took 207 MiB.
func TestCancelsWithoutQuorumAreBounded(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1)
	a := r.sites[0]
	fx := &effects{}
	told, full := map[uint64]int{}, 0
	cancel := func(num uint64) {
		a.core.cancel(cancelEvent{num: num, reply: func(err error) {
			if errors.Is(err, ErrFull) {
				full++
			} else {
				told[num]++
			}
		}}, fx)
	}
	for num := range uint64(60_000) {
		cancel(1000 + num)
	}
	for range 3 * maxCancelReplies {
		cancel(1000)
	}
	for _, reply := range fx.replies {
		reply()
	}
	if want := 60_000 - maxCancels + 2*maxCancelReplies + 1; full != want || len(told) > 0 {
		t.Errorf("%d are refused, want %d; told are %d", full, want, len(told))
	}
	if n := len(a.core.out.waiting) + len(a.core.out.inflight); n > maxCancels+10 {
		t.Errorf("%d commands for %d jobs", n, maxCancels)
	}
	for {
		a.turn(stateEvent{})
		if len(a.core.cancels.waiting) == 0 {
			break
		}
		r.settle()
	}
	if told[1000] != maxCancelReplies || len(told) != maxCancels {
		t.Errorf("%d of one job are told, want %d; of %d jobs, want %d", told[1000], maxCancelReplies, len(told), maxCancels)
	}
}

// TestSettingsWithoutQuorumAreBounded: so are changes of parameters.
func TestSettingsWithoutQuorumAreBounded(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1)
	a := r.sites[0]
	done := make(chan fsm.Code, 2*maxSettings)
	taken := 0
	for range 2 * maxSettings {
		if a.core.set(fsm.DefaultParams(), done) {
			taken++
		}
	}
	a.turn(stateEvent{})
	r.settle()
	if taken != maxSettings || len(done) != maxSettings || !a.core.set(fsm.DefaultParams(), done) {
		t.Errorf("%d were taken and %d answered, want %d", taken, len(done), maxSettings)
	}
}
