package core

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

var declinedAtHome = executor.Result{Cause: executor.Declined, Detail: "not started: " + errSick.Error()}

// Found by a user: a task that its own site took and could not begin waited at home for the
// end of the rest, while other sites were idle.
func TestDeclinedAtHomeRunsElsewhere(t *testing.T) {
	for _, restart := range []string{"", "while it was taken", "after it was declined"} {
		r := newRig(t, command.DefaultParams(), 2, 2)
		a, b := r.sites[0], r.sites[1]
		a.hold = true
		a.submit(`{"command":["x"]}`, "")
		id := a.asked[0].ID
		a.turn(AcceptedEvent{id})
		if a.core.home.SettledBelow(99) != 1 {
			t.Fatal("the number of a job that was not begun is settled")
		}
		if restart == "while it was taken" {
			a.ended[id] = declinedAtHome
			a.boot()
		} else {
			a.turn(EndedEvent{id, declinedAtHome})
		}
		if restart == "after it was declined" {
			a.boot() // before it was ordered; the rest is forgotten, and the queue asks this site first
			r.settle()
			again := a.asked[len(a.asked)-1].ID
			if len(a.asked) != 2 || len(b.running) != 0 || again.Token <= id.Token {
				t.Fatalf("asked %v; %d run at b", a.asked, len(b.running))
			}
			a.turn(AcceptedEvent{again}, EndedEvent{again, declinedAtHome})
		}
		r.settle()
		if len(b.running) != 1 || len(a.core.home.Numbers()) != 0 {
			t.Fatalf("restart %q: %d run at b; at home %v; asked %v", restart, len(b.running), a.core.home.Numbers(), a.asked)
		}
		b.finish(b.only(), 0)
		r.settle()
		if v := r.job("a.1"); v.State != fsm.TaskSucceeded {
			t.Errorf("restart %q: %s: %s", restart, v.State, v.Reason)
		}
	}
}

// What runs, or has run, at home is never published, whatever else of the job is declined and
// whoever restarts.
func TestDeclinedInPartStaysAtHome(t *testing.T) {
	for _, restart := range []bool{false, true} {
		r := newRig(t, command.DefaultParams(), 2, 2)
		a, b := r.sites[0], r.sites[1]
		a.hold = true
		a.submit(`{"command":["x"],"count":2,"retry":{"max_attempts":2}}`, "")
		first, second := a.asked[0], a.asked[1].ID
		a.turn(AcceptedEvent{first.ID}, AcceptedEvent{second}, EndedEvent{second, declinedAtHome})
		r.settle()
		if len(a.core.home.Numbers()) != 1 || a.core.home.SettledBelow(99) != 1 {
			t.Fatal("published or settled while a handler has a task of it")
		}
		a.turn(StartedEvent{first.ID})
		a.running[first.ID], a.began[first.ID] = first.Task, r.now
		if restart {
			a.boot()
		}
		if a.core.home.SettledBelow(99) != 99 {
			t.Error("what runs at home keeps its number unsettled")
		}
		a.finish(first.ID, 1) // it is to be tried again: all tasks wait
		a.turn(TickEvent{})
		r.settle()
		if len(b.history) != 0 || len(a.core.home.Numbers()) != 1 {
			t.Errorf("restart %v: b started %v", restart, b.history)
		}
	}
}

// Several tasks that were all handed back go together, once; a site that could not run them is
// no reason to go.
func TestDeclinedArrayGoesAsAWhole(t *testing.T) {
	for _, only := range []string{`"a"`, `"a","b"`} {
		r := newRig(t, command.DefaultParams(), 2, 2)
		a, b := r.sites[0], r.sites[1]
		a.hold = true
		a.submit(`{"command":["x"],"count":2,"sites":{"only":[`+only+`]}}`, "")
		for _, st := range a.asked[:2] {
			a.turn(AcceptedEvent{st.ID})
		}
		for _, st := range a.asked[:2] {
			a.turn(EndedEvent{st.ID, declinedAtHome})
		}
		r.now = r.now.Add(time.Millisecond)
		a.turn(TickEvent{})
		r.settle()
		if want := len(only) / 4 * 2; len(b.running) != want || len(a.asked) != 2 {
			t.Errorf("only %s: %d run at b, want %d; asked %v", only, len(b.running), want, a.asked)
		}
	}
}
