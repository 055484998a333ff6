package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

var errForbidden = fmt.Errorf("%w: image evil is not among those that this site allows", executor.ErrUnfit)

// pickyRig is a federation of which the first site runs images, and refuses those of
// the tests.
func pickyRig(t *testing.T, cores ...int64) *rig {
	t.Helper()
	r := newRig(t, command.DefaultParams(), cores...)
	for _, s := range r.sites {
		s.equip(executor.RunsBoth)
	}
	r.settle()
	r.sites[0].refuse = errForbidden
	return r
}

// A site that refuses its own users' image gives the job to the federation, where
// another site may run it.
func TestRefusedAtHomeRunsElsewhere(t *testing.T) {
	for _, count := range []int{1, 2} {
		r := pickyRig(t, 2, 2)
		a, b := r.sites[0], r.sites[1]
		i := a.submit(fmt.Sprintf(`{"image":"evil","count":%d}`, count), "")
		r.settle()
		if got := a.answers[i]; got.Err != nil || got.ID.String() != "a.1" {
			t.Fatalf("%+v", got)
		}
		if len(b.running) != count || len(a.core.home.Numbers()) != 0 || a.core.home.SettledBelow(99) != 99 {
			t.Fatalf("%d of %d run at b; at home: %v", len(b.running), count, a.core.home.Numbers())
		}
		for id := range b.running {
			b.finish(id, 0)
		}
		r.settle()
		if v := r.job("a.1"); v.State != fsm.TaskSucceeded {
			t.Errorf("%s: %s", v.State, v.Reason)
		}
	}
}

// Nobody else could run it: it fails at once, and says why.
func TestRefusedAtHomeAndNowhereElse(t *testing.T) {
	for spec, want := range map[string]string{
		`{"image":"evil","count":2}`:                                                errForbidden.Error() + "; no other site could run it",
		`{"image":"evil","sites":{"only":["a"]}}`:                                   errForbidden.Error() + "; no other site could run it",
		`{"image":"evil","sites":{"not":["b","x"]},"retry":{"max_attempts":9}}`:     errForbidden.Error() + "; no other site could run it",
		`{"image":"evil","sites":{"only":["a","c"]},"retry":{"max_attempts":1000}}`: errForbidden.Error() + "; no other site could run it",
	} {
		r := pickyRig(t, 2, 2)
		a, b := r.sites[0], r.sites[1]
		if strings.Contains(spec, "count") {
			b.equip(executor.RunsCommands)
			r.settle()
		}
		a.submit(spec, "")
		r.settle()
		j, ok := a.core.own.Job(1)
		if !ok || j.State != "failed" || j.Reason != want || len(b.history) != 0 || a.core.home.Waiting() != 0 {
			t.Errorf("%s: %s %q; b started %v", spec, j.State, j.Reason, b.history)
		}
	}
}

// Another handler of the site takes it: it stays at home.
func TestRefusedByOneHandler(t *testing.T) {
	r := pickyRig(t, 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.core.bounds.SetGuard("other", Guard{Watchdog: true})
	a.turn(CapacityEvent{"other", []executor.Machine{{
		Name: "z", Runs: executor.RunsImages, Resources: executor.Resources{MilliCPU: 1000, MemMiB: 1024},
	}}})
	r.settle()
	a.hold = true
	a.submit(`{"image":"evil","sites":{"not":["b"]}}`, "")
	if len(a.asked) != 1 || a.asked[0].Handler != "local" {
		t.Fatalf("asked: %v", a.asked)
	}
	a.turn(RefusedEvent{a.asked[0].ID, errForbidden})
	if len(a.asked) != 2 || a.asked[1].Handler != "other" || a.asked[1].ID.Attempt != 2 {
		t.Fatalf("asked: %v", a.asked)
	}
	a.turn(AcceptedEvent{a.asked[1].ID}, StartedEvent{a.asked[1].ID})
	if j, _ := a.core.own.Job(1); j.State != "running" || a.core.home.SettledBelow(99) != 99 || len(b.history) != 0 {
		t.Errorf("%s, settled below %d", j.State, a.core.home.SettledBelow(99))
	}
}

// A job of which some tasks run here is no job for the federation: the refused one
// fails, whichever answer comes first.
func TestRefusedInPart(t *testing.T) {
	for _, first := range []string{"taken", "refused"} {
		r := pickyRig(t, 2, 2)
		a, b := r.sites[0], r.sites[1]
		a.hold = true
		a.submit(`{"image":"evil","count":2}`, "")
		taken, refused := Event(AcceptedEvent{a.asked[0].ID}), Event(RefusedEvent{a.asked[1].ID, errForbidden})
		if first == "taken" {
			a.turn(taken)
			a.turn(refused)
		} else {
			a.turn(refused)
			a.turn(taken)
		}
		r.settle()
		if task := a.core.home.Find(1).Tasks[1]; task.State != fsm.TaskFailed || task.Reason != errForbidden.Error() {
			t.Errorf("%s first: %s %q", first, task.State, task.Reason)
		}
		if len(b.history) != 0 || a.core.home.Waiting() != 0 {
			t.Errorf("%s first: b started %v, %d wait", first, b.history, a.core.home.Waiting())
		}
	}
}

// As long as a job may still be published, the state must not be told that its
// number is settled: it would take the job for one that has ended long ago.
func TestRefusedLateIsStillTaken(t *testing.T) {
	r := pickyRig(t, 2, 2)
	a, b := r.sites[0], r.sites[1]
	a.hold = true
	a.submit(`{"image":"evil"}`, "")
	a.submit(`{"image":"good","count":4,"sites":{"only":["b"]}}`, "") // to the federation
	r.settle()
	a.turn(RefusedEvent{a.asked[0].ID, errForbidden})
	r.settle()
	for id := range b.running {
		b.finish(id, 0)
	}
	r.settle()
	if v := r.job("a.1"); v.State != fsm.Queued && v.State != fsm.Running {
		t.Errorf("%s: %s", v.State, v.Reason)
	}
}

// A site alone keeps a refused job, over a restart too, until there is a federation
// to give it to.
func TestRefusedAlone(t *testing.T) {
	r := pickyRig(t, 2, 2)
	a, b := r.sites[0], r.sites[1]
	a.reopen()
	a.submit(`{"image":"evil"}`, "")
	w, ok := a.core.own.Why(1)
	if j, _ := a.core.own.Job(1); !ok || j.State != "queued" || j.Reason != errForbidden.Error() ||
		!strings.HasPrefix(w.Summary, "its own site does not run it: ") {
		t.Fatalf("%s %q: %q", j.State, j.Reason, w.Summary)
	}
	held, lost := a.reopen()
	if a.core.home.SettledBelow(99) != 1 {
		t.Fatal("a job that may be published is settled")
	}
	a.turn(TickEvent{})
	a.register(held, lost)
	a.lease(time.Hour)
	r.settle()
	if id := b.only(); id.Job != "a.1" {
		t.Errorf("%s runs at b", id)
	}
}

// A broker of the version before had the number of a job settled that it had tried at
// home. The state would take such a job for one that has ended: it fails here, with
// its reason, and is not lost on the way.
func TestRefusedAfterItsNumberWasSettled(t *testing.T) {
	r := pickyRig(t, 2, 2)
	a, b := r.sites[0], r.sites[1]
	a.hold = true
	a.submit(`{"image":"evil"}`, "")
	a.submit(`{"image":"good","count":4,"sites":{"only":["b"]}}`, "")
	for _, cmd := range a.submits() {
		cmd.Settled = 2 // as it was
	}
	r.settle()
	if !r.state.Retired(command.JobID{Site: "a", Num: 1}) || r.state.Retired(command.JobID{Site: "a", Num: 2}) ||
		r.state.Retired(command.JobID{Site: "a", Num: 3}) {
		t.Fatal("the first number alone is settled")
	}
	a.turn(RefusedEvent{a.asked[0].ID, errForbidden})
	r.settle()
	if j, ok := a.core.own.Job(1); !ok || j.State != "failed" || !strings.HasPrefix(j.Reason, errForbidden.Error()) ||
		len(b.running) != 2 {
		t.Errorf("%s %q; b runs %d", j.State, j.Reason, len(b.running))
	}
}

// A broker that is not registered yet may know an old state only, or none: a job is
// not given up for what that says of other sites.
func TestRefusedBeforeTheStateIsKnown(t *testing.T) {
	for _, able := range []bool{true, false} {
		r := pickyRig(t, 2, 2)
		a, b := r.sites[0], r.sites[1]
		if !able {
			b.equip(executor.RunsCommands)
			r.settle()
		}
		known := r.state
		r.state = fsm.New()
		held, lost := a.reopen()
		a.submit(`{"image":"evil"}`, "")
		if j, _ := a.core.own.Job(1); j.State != "queued" {
			t.Fatalf("%s %q", j.State, j.Reason)
		}
		r.state = known
		a.register(held, lost)
		a.lease(time.Hour)
		r.settle()
		a.turn(TickEvent{})
		if j, _ := a.core.own.Job(1); len(b.running) == 1 != able || j.State == "failed" == able {
			t.Errorf("b runs %d, at home: %s %q", len(b.running), j.State, j.Reason)
		}
	}
}

// While another handler of the site could run it, a job that one refuses waits for that.
func TestRefusedByOneWaitsForTheOther(t *testing.T) {
	r := pickyRig(t, 1, 1)
	a := r.sites[0]
	a.core.bounds.SetGuard("other", Guard{Watchdog: true})
	a.turn(CapacityEvent{"other", []executor.Machine{{
		Name: "z", Runs: executor.RunsImages, Resources: executor.Resources{MilliCPU: 1000, MemMiB: 1024},
	}}})
	r.settle()
	a.hold = true
	a.submit(`{"image":"evil","count":2}`, "")
	for _, st := range a.asked {
		if st.Handler == "local" {
			a.turn(RefusedEvent{st.ID, errForbidden})
		} else {
			a.turn(AcceptedEvent{st.ID}, StartedEvent{st.ID})
		}
	}
	if w, _ := a.core.own.Why(1); !strings.HasPrefix(w.Summary, "waits for room at its own site") {
		t.Errorf("%q", w.Summary)
	}
}
