package core

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/keys"
)

// Found by review: keys aged by the date, so that setting the clock forward made
// one key two jobs. A repeat after the date was set is the same job, also by
// another start of the broker, and a key is forgotten after a day of running.
func TestDateStepKeepsKeys(t *testing.T) {
	for _, step := range []time.Duration{48 * time.Hour, -48 * time.Hour} {
		r := newRig(t, command.DefaultParams(), 1)
		a := r.sites[0]
		a.submit(sleepJob, "key")
		r.settle()
		same := func(when string) {
			t.Helper()
			a.turn(TickEvent{})
			i := a.submit(sleepJob, "key")
			r.settle()
			if got := a.answers[i]; got.Err != nil || !got.Replayed || got.ID.Num != 1 {
				t.Errorf("step of %s, %s: %+v", step, when, got)
			}
		}
		r.dateStep = step
		same("at once")
		a.boot()
		same("after a restart")
		r.dateStep = 0
		a.boot()
		same("after the way back")
		r.now = r.now.Add(keys.Lifetime - time.Hour)
		a.lease(time.Hour)
		same("most of a day later")
		r.now = r.now.Add(time.Hour + 2*keys.Step)
		a.lease(time.Hour)
		a.turn(TickEvent{})
		if a.core.keys.Len() != 0 {
			t.Errorf("step of %s: %d keys are held after a day", step, a.core.keys.Len())
		}
	}
}

// TestDowntimeDoesNotAgeKeys: the clock stands still while no broker runs, and
// goes on where it stood.
func TestDowntimeDoesNotAgeKeys(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "key")
	r.settle()
	for day := range 3 {
		r.now = r.now.Add(9 * time.Hour)
		a.turn(TickEvent{})
		if held := a.core.keys.Len(); held != 1 && day < 2 || held != 0 && day == 2 {
			t.Fatalf("%d keys are held after %d hours", held, 9*(day+1))
		}
		r.now = r.now.Add(100 * time.Hour) // down
		a.boot()
	}
}
