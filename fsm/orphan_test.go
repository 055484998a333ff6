package fsm

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// orphanWorld is a federation by the version that has orphans, in which b runs a task of a that may fail once.
func orphanWorld(t *testing.T, timeoutMs int64) *world {
	t.Helper()
	w := newWorld(t, params(), "a", "b")
	w.must("a", &command.Raise{Version: command.OrphansVersion})
	w.must("b", w.offering("b", 1))
	j := w.job("a", 1)
	j.TimeoutMs = timeoutMs
	w.submit("a", j)
	return w
}

// orphan reports that b's only attempt was orphaned.
func (w *world) orphan(runMs int64) {
	w.t.Helper()
	w.must("b", &command.Orphans{Attempts: []command.Ended{ended(w.s.Assignments("b")[0], command.Orphaned, runMs)}})
	w.check()
}

// TestOrphanCostsNoMoreThanAFailure: whatever a site says of an orphan, its owner is charged at most what the same
// words would charge of an ordinary end, and at most the time since the reported start. Priorities sum to zero.
func TestOrphanCostsNoMoreThanAFailure(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(what string, most int64) int64 { return rapid.Int64Range(0, most).Draw(rt, what) }
		timeout, started, delay, now := draw("timeout", 900), draw("started", 900), draw("delay", 2000), draw("now", 2000)
		run, tells := draw("run", 3000), rapid.Bool().Draw(rt, "tells")
		charged := map[command.Outcome]sched.Int128{}
		for _, o := range []command.Outcome{command.Failed, command.Orphaned} {
			w := orphanWorld(t, timeout)
			a := w.s.Assignments("b")[0]
			if tells {
				w.at(started)
				st := command.StartedAttempt{AttemptRef: a.AttemptRef, DelayMs: started}
				w.must("b", &command.Started{Attempts: []command.StartedAttempt{st}})
			}
			w.at(max(now, started))
			e := ended(a, o, run)
			e.DelayMs = delay
			c := &command.Complete{Attempts: []command.Ended{e}}
			if o == command.Orphaned {
				w.must("b", (*command.Orphans)(c))
			} else {
				w.must("b", c)
			}
			w.check()
			charged[o] = w.s.byName["a"].account.Used.A
			if most := 1000 * (w.s.time - started); tells && o == command.Orphaned &&
				charged[o].Cmp(sched.Mul64(most, 1)) > 0 {
				rt.Errorf("charged %v since a start at %d: at most %d", charged[o], started, most)
			}
			if w.s.byName["b"].account.Gave.A != charged[o] {
				rt.Errorf("b gave %v, a used %v", w.s.byName["b"].account.Gave.A, charged[o])
			}
		}
		if charged[command.Orphaned].Cmp(charged[command.Failed]) > 0 {
			rt.Errorf("an orphan costs %v, a failure %v", charged[command.Orphaned], charged[command.Failed])
		}
	})
}

// TestFiveOrphansAreTheOwnersFault: also over snapshots, and among losses of sites, which have a count of their own.
func TestFiveOrphansAreTheOwnersFault(t *testing.T) {
	w := orphanWorld(t, 0)
	for n := range uint32(MaxOrphans - 1) {
		w.orphan(10)
		w.must("b", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("b")[0], command.Lost, 10)}})
		w.reborn()
		if v := w.task(); v.State != Assigned || v.Orphans != n+1 || v.Losses != n+1 || v.Failures != 0 {
			t.Fatalf("after %d: %+v", n+1, v)
		}
	}
	var events []Event
	w.s.Observe(&events)
	w.orphan(10)
	if v := w.task(); v.State != TaskFailed || v.Orphans != MaxOrphans || !strings.Contains(v.Reason, "owner's fault") {
		t.Errorf("after five: %+v", v)
	}
	v, _ := w.s.Job(command.JobID{Site: "a", Num: 1})
	if v.State != TaskFailed || !strings.Contains(v.Reason, "owner's fault") {
		t.Errorf("the job: %v %q", v.State, v.Reason)
	}
	told := 0
	for _, e := range events {
		if e.End == EndFailed && strings.Contains(e.Reason, "owner's fault") {
			told++
		}
	}
	if told != 2 { // of the task, of the job
		t.Errorf("events: %+v", events)
	}
}

// TestOrphanIsDead: a bound does not delay the end of an orphan, unlike that of a lost attempt.
func TestOrphanIsDead(t *testing.T) {
	w := orphanWorld(t, 0)
	a := w.s.Assignments("b")[0]
	w.must("b", &command.Bound{Attempts: []command.BoundAttempt{{AttemptRef: a.AttemptRef, BoundMs: 60_000}}})
	w.orphan(10)
	if v := w.task(); v.Orphans != 1 || v.Attempt != 2 {
		t.Errorf("it waits for its bound: %+v", v)
	}
}

// TestOrphanOfALeftover: where a task has gone on elsewhere, its former attempt's end as an orphan counts, and costs
// nothing, like any end but a success.
func TestOrphanOfALeftover(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	w.must("a", &command.Raise{Version: command.OrphansVersion})
	w.must("b", w.offering("b", 1))
	w.submitImmediate("a", 1)
	first := w.s.Assignments("b")[0]
	w.suspect("b", true)
	w.must("c", w.offering("c", 1))
	w.must("b", &command.Orphans{Attempts: []command.Ended{ended(first, command.Orphaned, 10)}})
	w.check()
	if v := w.task(); v.Site != "c" || v.Orphans != 1 || v.Losses != 0 {
		t.Errorf("got %+v", v)
	}
	if used := w.s.byName["a"].account.Used.A; used != (sched.Int128{}) {
		t.Errorf("charged %v", used)
	}
}

// TestNoOrphansBeforeTheirVersion: neither the command nor a snapshot brings any into a state of version 1, and a
// snapshot without them is the same by both versions, but for the version.
func TestNoOrphansBeforeTheirVersion(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 1))
	w.submit("a", w.job("a", 1))
	before := w.task()
	c := &command.Orphans{Attempts: []command.Ended{ended(w.s.Assignments("b")[0], command.Orphaned, 10)}}
	if r := w.do("b", c); r.Code != command.OutOfRange || w.task() != before {
		t.Errorf("%v, then %+v", r.Code, w.task())
	}
	old := snapshotOf(t, w.s)
	w.s.version = command.OrphansVersion
	if now := snapshotOf(t, w.s); len(now) != len(old) {
		t.Errorf("a state without orphans takes %d bytes instead of %d", len(now), len(old))
	}
	w.orphan(10)
	w.s.version = command.FirstVersion
	if _, err := Restore(bytes.NewReader(snapshotOf(t, w.s))); err == nil || !strings.Contains(err.Error(), "orphan") {
		t.Errorf("an orphan by version 1 was restored: %v", err)
	}
}

// TestWaitingOrphanSaysWhy: a task that waits again says what became of its attempts.
func TestWaitingOrphanSaysWhy(t *testing.T) {
	w := orphanWorld(t, 0)
	as := w.s.Assignments("b")
	w.must("b", w.offering("b")) // no machine any more
	w.must("b", &command.Orphans{Attempts: []command.Ended{ended(as[0], command.Orphaned, 10)}})
	if v := w.task(); v.State != Queued || !strings.HasPrefix(v.Reason, "1 of its attempts lost what watched") {
		t.Errorf("got %+v", v)
	}
}
