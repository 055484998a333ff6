package core

import (
	"errors"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// TestCancelsWithoutQuorumAreBounded: cancellations that the order does not take are
// refused beyond a bound, and those of one job share a command. 60,000 of them once
// took 207 MiB.
func TestCancelsWithoutQuorumAreBounded(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	fx := &Effects{}
	told, full := map[uint64]int{}, 0
	cancel := func(num uint64) {
		a.core.cancels.cancel(CancelEvent{Num: num, Reply: func(err error) {
			if errors.Is(err, node.ErrFull) {
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
	for _, reply := range fx.Replies {
		reply()
	}
	if want := 60_000 - maxCancels + 2*maxCancelReplies + 1; full != want || len(told) > 0 {
		t.Errorf("%d are refused, want %d; told are %d", full, want, len(told))
	}
	if n := a.core.out.Len(); n > maxCancels+10 {
		t.Errorf("%d commands for %d jobs", n, maxCancels)
	}
	for {
		a.turn(StateEvent{})
		if len(a.core.cancels.waiting) == 0 {
			break
		}
		r.settle()
	}
	if told[1000] != maxCancelReplies || len(told) != maxCancels {
		t.Errorf("%d of one job are told, want %d; of %d jobs, want %d", told[1000], maxCancelReplies, len(told), maxCancels)
	}
}

// TestOrdersWithoutQuorumAreBounded: so is what people want of the federation.
func TestOrdersWithoutQuorumAreBounded(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	done := make(chan command.Result, 2*MaxOrders)
	body := &command.SetParams{Params: command.DefaultParams()}
	taken := 0
	for range 2 * MaxOrders {
		if a.core.Order(body, done) {
			taken++
		}
	}
	a.turn(StateEvent{})
	r.settle()
	if taken != MaxOrders || len(done) != MaxOrders || !a.core.Order(body, done) {
		t.Errorf("%d were taken and %d answered, want %d", taken, len(done), MaxOrders)
	}
}

// TestTaskCancelsAreBounded: what waits for a quorum has a bound, and single tasks of
// a job that is on its way are refused with what to do.
func TestTaskCancelsAreBounded(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(`{"command":["x"],"count":20000,"resources":{"cpu":9}}`, "")
	all, _ := jobspec.ParseIndices("0-19999")
	var err error
	cancel := func() { a.turn(CancelEvent{Num: 1, Tasks: all, Reply: func(e error) { err = e }}) }
	if cancel(); !errors.Is(err, node.ErrNotReady) || !strings.Contains(err.Error(), "try again") {
		t.Errorf("on its way: %v", err)
	}
	r.settle()
	if cancel(); !errors.Is(err, node.ErrFull) {
		t.Errorf("too many: %v", err)
	}
	if n := a.core.cancels.tasks; n != 0 {
		t.Errorf("%d tasks wait", n)
	}
}
