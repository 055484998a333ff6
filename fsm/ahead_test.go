package fsm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// newAhead returns a federation whose version has tasks ahead, where a's and b's machines idle for a second between
// tasks; c's do not.
func newAhead(t *testing.T, p command.Params) *world {
	t.Helper()
	w := newWorld(t, p, "a", "b", "c")
	w.must("a", &command.Raise{Version: command.AheadVersion})
	for _, x := range []string{"a", "b"} {
		w.must(x, &command.Ahead{IdleMs: 1000})
	}
	return w
}

// end reports the end of a site's first assignment that is not one of those given.
func (w *world) end(site string, runMs int64) {
	w.t.Helper()
	e := ended(w.s.Assignments(site)[0], command.Succeeded, runMs)
	e.Ran = true
	w.must(site, &command.Complete{Attempts: []command.Ended{e}})
	w.check()
}

// assigned returns how many tasks each site is assigned.
func (w *world) assigned() string {
	out := ""
	for _, x := range w.s.order {
		out += fmt.Sprintf("%s%d ", x.name, len(w.s.Assignments(x.name)))
	}
	return out
}

// TestAheadIsEarned: the end of a run earns its machine what fills the time until the next assignment, nothing if that
// is short beside the run, and never more than twice what is offered.
func TestAheadIsEarned(t *testing.T) {
	for _, c := range []struct{ run, first, second, third int }{
		{run: 0, first: 3, second: 3, third: 3},
		{run: 1000, first: 3, second: 3, third: 3},
		{run: 1001, first: 2, second: 2, third: 2},
		{run: 4000, first: 2, second: 2, third: 2},
		{run: 4001, first: 1, second: 1, third: 1},
	} {
		w := newAhead(t, params())
		w.must("b", w.offering("b", 1))
		w.submit("c", w.job("c", 50))
		if got := w.assigned(); got != "a0 b1 c0 " {
			t.Fatalf("before any end: %s", got)
		}
		for i, want := range []int{c.first, c.second, c.third} {
			w.at(int64(i+1) * 10_000)
			w.end("b", int64(c.run))
			if got, want := w.assigned(), fmt.Sprintf("a0 b%d c0 ", want); got != want {
				t.Errorf("after end %d of %d ms: %s, want %s", i+1, c.run, got, want)
			}
		}
	}
}

// TestAheadComesLast: what another machine could begin now is not assigned ahead, and what is begins in turn.
func TestAheadComesLast(t *testing.T) {
	w := newAhead(t, params())
	w.must("b", w.offering("b", 1))
	w.must("c", w.offering("c", 4))
	w.submit("a", w.job("a", 7))
	w.at(1000)
	w.end("b", 10) // two are left for b: one begins, none is free elsewhere
	if got := w.assigned(); got != "a0 b2 c4 " {
		t.Errorf("with two left: %s", got)
	}
	w.end("c", 10) // nothing waits; c has said nothing of idling
	if got := w.assigned(); got != "a0 b2 c3 " {
		t.Errorf("with none left: %s", got)
	}
	w.submit("a", w.job("a", 9))
	if got := w.assigned(); got != "a0 b2 c4 " {
		t.Errorf("c's room first, and a submission earns nothing: %s", got)
	}
}

// TestAheadKeepsTheOrder: who is served ahead is who would be served next.
func TestAheadKeepsTheOrder(t *testing.T) {
	p := params()
	p.Policy = sched.SimplDirect
	w := newAhead(t, p)
	w.must("c", w.offering("c", 1))
	w.must("c", &command.Ahead{IdleMs: 1000})
	w.submit("a", w.job("a", 5))
	w.submit("b", w.job("b", 5))
	w.at(500)
	w.end("c", 500) // a's first task is charged: b is next, and with equal debts while nothing runs, b stays next
	var owners []string
	for _, a := range w.s.Assignments("c") {
		owners = append(owners, a.Job.Site)
	}
	if !slices.Equal(owners, []string{"b", "b", "b"}) {
		t.Errorf("c is given tasks of %v", owners)
	}
}

// TestAheadIsNotCharged: nothing is charged before the start, and the wait ahead is no part of the run.
func TestAheadIsNotCharged(t *testing.T) {
	w := newAhead(t, params())
	w.must("b", w.offering("b", 1))
	w.submit("c", w.job("c", 3))
	w.at(1000)
	w.end("b", 1000)
	w.at(9000)
	if got := w.s.Ledger().Sites[1].Contribution; got != "1000000" {
		t.Errorf("b gave %s after one second's run", got)
	}
	e := ended(w.s.Assignments("b")[0], command.Succeeded, 300)
	e.DelayMs = 7000 // 1000 + 7000 … 8300
	w.must("b", &command.Complete{Attempts: []command.Ended{e}})
	if got := w.s.Ledger().Sites[1].Contribution; got != "1300000" {
		t.Errorf("b gave %s after 1.3 s of runs", got)
	}
}

// TestHandBack: what is handed back returns to the head of its job without a bar, and begins where there is room.
func TestHandBack(t *testing.T) {
	w := newAhead(t, params())
	w.must("b", w.offering("b", 1))
	w.submit("c", w.job("c", 4))
	w.at(1000)
	w.end("b", 1000)
	as := w.s.Assignments("b")
	w.must("c", w.offering("c", 1)) // there is room at c now, and nothing waits
	w.must("b", &command.HandBack{Attempts: []command.AttemptRef{as[2].AttemptRef}, Reason: "c is free"})
	w.check()
	if got := w.assigned(); got != "a0 b2 c1 " {
		t.Fatalf("after it was handed back: %s", got)
	}
	v := w.s.viewTask(w.s.findJob(as[2].Job), w.s.jobs.Get(w.s.findJob(as[2].Job)), as[2].Task)
	if v.Site != "c" || v.Attempt != 2 || v.Losses != 0 || v.Failures != 0 {
		t.Errorf("the task is %+v", v)
	}
	w.must("b", &command.Complete{Attempts: []command.Ended{ended(as[2], command.Succeeded, 1)}})
	if got := w.assigned(); got != "a0 b2 c1 " {
		t.Errorf("the former attempt ended the task: %s", got)
	}
	// Without room elsewhere it may begin at b: it is not barred from there.
	w.must("c", w.offering("c"))
	w.must("b", &command.HandBack{Attempts: []command.AttemptRef{as[0].AttemptRef, as[1].AttemptRef}})
	if got := w.assigned(); got != "a0 b1 c1 " {
		t.Errorf("after all was handed back: %s", got)
	}
}

// TestNothingAhead: of a site that is suspected, has registered again, offers no such machine, or under a policy whose
// ranks count assignments as starts.
func TestNothingAhead(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"suspected": func(w *world) {
			w.must("a", &command.Suspect{Site: "b", Incarnation: w.inc["b"], On: true})
		},
		"registered": func(w *world) {
			c := w.registration("b", []command.AttemptRef{w.s.Assignments("b")[0].AttemptRef}, nil)
			w.inc["b"] = w.apply(c)[0].Incarnation
			w.seq["b"] = 0
			w.must("b", w.offering("b", 1))
		},
		"smaller":   func(w *world) { w.must("b", &command.Offer{Version: 9}) },
		"says so":   func(w *world) { w.must("b", &command.Ahead{}) },
		"projected": func(w *world) { p := w.s.params; p.Policy = sched.CE; w.must("a", &command.SetParams{Params: p}) },
	} {
		w := newAhead(t, params())
		w.must("b", w.offering("b", 1))
		w.submit("c", w.job("c", 50))
		before(w)
		e := ended(w.s.Assignments("b")[0], command.Succeeded, 1)
		w.must("b", &command.Complete{Attempts: []command.Ended{e}})
		w.check()
		if n := len(w.s.Assignments("b")); n > 1 {
			t.Errorf("%s: b is assigned %d tasks", name, n)
		}
	}
}

// TestAheadOfAReservation: a machine that is reserved gets nothing ahead, or its job would wait for that, too.
func TestAheadOfAReservation(t *testing.T) {
	p := params()
	p.ReserveAfterMs = 1000
	w := newAhead(t, p)
	w.must("b", w.offering("b", 2))
	wide := w.job("a", 1)
	wide.Need.MilliCPU = 2000
	w.submit("c", w.job("c", 2))
	w.submit("a", wide)
	for _, ms := range []int64{5000, 10_000} {
		w.at(ms)
		w.must("a", w.offering("a"))
	}
	if w.s.reservations.Len() != 1 {
		t.Fatal("nothing is reserved")
	}
	w.submit("c", w.job("c", 50))
	w.end("b", 10)
	if as := w.s.Assignments("b"); len(as) != 1 {
		t.Errorf("b is assigned %d tasks while a wide one waits for it", len(as))
	}
	w.end("b", 10)
	if as := w.s.Assignments("b"); len(as) == 0 || as[0].Job.Site != "a" {
		t.Errorf("b is assigned %+v, not the wide task", as)
	}
}

// TestAheadNeedsItsVersion: before it is in force, neither command is known.
func TestAheadNeedsItsVersion(t *testing.T) {
	w := newWorld(t, params(), "a")
	before := w.s.Hash()
	for _, b := range []command.Body{&command.Ahead{IdleMs: 1}, &command.HandBack{}} {
		c := command.Command{ID: command.ID{Site: "a", Incarnation: 1, Seq: 1}, Body: b}
		if r := w.apply(c)[0]; r.Code == command.OK {
			t.Errorf("%T: %v", b, r.Code)
		}
	}
	if x := w.s.byName["a"]; x.idleMs != 0 || len(x.window) != 0 || w.s.Hash() == before {
		t.Error("it left a trace")
	}
}

// TestWideTasksAreNotAhead: beside a long task no number of short ends makes room for a wide one. Assigned ahead, it
// would keep the short ones behind it from free cores, be handed back, and never wait long enough for a reservation.
func TestWideTasksAreNotAhead(t *testing.T) {
	p := params()
	p.ReserveAfterMs = 10_000
	w := newAhead(t, p)
	w.must("b", w.offering("b", 2))
	w.submit("c", w.job("c", 1), w.job("c", 500))
	wide := w.job("a", 1)
	wide.Need.MilliCPU = 2000
	w.submit("a", wide)
	long := w.s.Assignments("b")[0].AttemptRef
	seq := w.s.findJob(command.JobID{Site: "a", Num: wide.Num})
	for ms := int64(1000); ms <= 60_000 && !w.s.isHeld(seq); ms += 1000 {
		w.at(ms)
		w.endShort("b", long)
		for _, a := range w.s.Assignments("b") {
			if a.Job.Site == "a" {
				w.must("b", &command.HandBack{Attempts: []command.AttemptRef{a.AttemptRef}, Reason: "it stands"})
			}
		}
		w.check()
	}
	if !w.s.isHeld(seq) {
		t.Errorf("after %d ms nothing is reserved for a task that waits since the beginning", w.s.time)
	}
}

// endShort reports the end of a site's first assignment that is neither the long one nor a's.
func (w *world) endShort(site string, long command.AttemptRef) {
	w.t.Helper()
	for _, a := range w.s.Assignments(site) {
		if a.AttemptRef != long && a.Job.Site != "a" {
			e := ended(a, command.Succeeded, 10)
			e.Ran = true
			w.must(site, &command.Complete{Attempts: []command.Ended{e}})
			return
		}
	}
}
