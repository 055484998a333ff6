package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// newFarRig founds a federation whose sites idle for 200 ms between tasks, as far as they know, and have told so.
func newFarRig(t *testing.T, cores ...int64) *rig {
	t.Helper()
	r := newRig(t, fixedParams(), cores...)
	r.raise()
	r.far = 200 * time.Millisecond
	for _, s := range r.sites {
		for range 32 {
			s.core.ahead.Took(200 * time.Millisecond)
		}
		s.ticks(1)
	}
	r.settle()
	for _, s := range r.sites {
		if got := s.core.ahead.Ms(); got != 256 {
			t.Fatalf("%s told %d ms", s.name, got)
		}
	}
	return r
}

func fixedParams() command.Params {
	p := command.DefaultParams()
	p.FixedOrder, p.PreferOwn = true, false
	return p
}

// raise puts the newest version in force.
func (r *rig) raise() {
	r.t.Helper()
	r.sites[0].turn(RaiseEvent{fsm.Version})
	r.settle()
	if v := r.state.Version(); v != fsm.Version {
		r.t.Fatalf("version %d", v)
	}
}

// endAfter ends one running attempt after a run that began with it.
func (s *rigSite) endAfter(id executor.ID, run time.Duration) {
	s.rig.t.Helper()
	delete(s.running, id)
	res := executor.Result{Started: s.began[id], Run: run}
	s.ended[id] = res
	s.turn(EndedEvent{id, res})
}

// waiting returns the ids of what waits at a site ahead.
func (s *rigSite) waiting() (out []string) {
	for _, m := range s.core.ahead.Machines() {
		queue, _ := s.core.ahead.Of(m)
		for _, h := range queue {
			out = append(out, h.ID.String())
		}
	}
	return out
}

const shortArray = `{"command":["true"],"count":6,"resources":{"cpu":1},"sites":{"only":["b"]}}`

// runFirst has a submit an array to b and ends its first task after so short a run that two more are assigned ahead.
func (r *rig) runFirst() (a, b *rigSite) {
	r.t.Helper()
	a, b = r.sites[0], r.sites[1]
	a.submit(shortArray, "")
	r.settle()
	first := b.only()
	r.now = r.now.Add(100 * time.Millisecond)
	b.endAfter(first, 100*time.Millisecond)
	r.settle()
	if got := b.waiting(); len(got) != 2 || len(b.running) != 1 {
		r.t.Fatalf("%d run, %v wait", len(b.running), got)
	}
	return a, b
}

// TestAheadBeginsWithoutAWord: when a task ends, the next one begins in the same turn, though nothing is ordered.
func TestAheadBeginsWithoutAWord(t *testing.T) {
	r := newFarRig(t, 0, 1)
	_, b := r.runFirst()
	next := b.waiting()[0]
	r.now = r.now.Add(150 * time.Millisecond)
	b.endAfter(b.only(), 100*time.Millisecond)
	if got := b.only().String(); got != next {
		t.Errorf("%s runs, want %s", got, next)
	}
	r.now = r.now.Add(50 * time.Millisecond)
	b.endAfter(b.only(), 50*time.Millisecond)
	i := slices.IndexFunc(b.pending, func(c command.Command) bool {
		done, is := c.Body.(*command.Complete)
		return is && slices.ContainsFunc(done.Attempts, func(e command.Ended) bool { return e.RunMs == 50 })
	})
	if i < 0 {
		t.Fatal("its end is not reported")
	}
	if e := b.pending[i].Body.(*command.Complete).Attempts[0]; e.DelayMs != 150 {
		t.Errorf("it began %d ms after its assignment, by its site, not 150", e.DelayMs)
	}
	r.settle()
	if l := r.state.Ledger(); l.Sites[1].Contribution != "250000" {
		t.Errorf("b gave %s for 100 + 100 + 50 ms of a core", l.Sites[1].Contribution)
	}
}

// TestAheadIsReturned: what waits too long goes back to the queue, unbarred, and begins where there is room.
func TestAheadIsReturned(t *testing.T) {
	r := newFarRig(t, 0, 1, 0)
	_, b := r.runFirst()
	b.ticks(10)
	if len(b.waiting()) != 2 {
		t.Errorf("after a second: %v", b.waiting())
	}
	b.ticks(1) // 4 × 256 ms are over
	if len(b.waiting()) != 0 {
		t.Errorf("after 1.1 s: %v", b.waiting())
	}
	r.settle()
	if c := r.job("a.1").Counts; c[fsm.Queued] != 4 || c[fsm.Running]+c[fsm.Assigned] != 1 {
		t.Errorf("the job's tasks: %v", c)
	}
	r.now = r.now.Add(3 * time.Second)
	b.endAfter(b.only(), 3*time.Second)
	r.settle()
	if len(b.running) != 1 || len(b.waiting()) != 0 {
		t.Errorf("after a long run %d run, %v wait", len(b.running), b.waiting())
	}
	if why := r.job("a.1").Reason; strings.Contains(why, "declined") {
		t.Errorf("it waits because %s", why)
	}
}

// TestAheadGoesWhereThereIsRoom: once it has waited for as long as a message travels, and another site could begin it.
func TestAheadGoesWhereThereIsRoom(t *testing.T) {
	r := newFarRig(t, 0, 1, 0)
	a, b := r.sites[0], r.sites[1]
	a.submit(strings.Replace(strings.Replace(shortArray, `["b"]`, `["b","c"]`, 1), "6", "4", 1), "")
	r.settle()
	r.now = r.now.Add(100 * time.Millisecond)
	b.endAfter(b.only(), 100*time.Millisecond)
	r.settle()
	if b.ticks(4); len(b.waiting()) != 2 {
		t.Errorf("while there is no room elsewhere: %v", b.waiting())
	}
	c := r.sites[2]
	c.cores = 4
	c.turn(CapacityEvent{"local", []executor.Machine{c.machine()}})
	r.settle()
	b.ticks(1)
	r.settle()
	if len(b.waiting()) != 0 || len(c.running) != 2 {
		t.Errorf("%v wait at b, %d run at c", b.waiting(), len(c.running))
	}
}

// TestAheadEndsWithItsJob, with a drain, and with its site's registration: like any assignment that has not begun.
func TestAheadEndsWithItsJob(t *testing.T) {
	r := newFarRig(t, 0, 1)
	a, b := r.runFirst()
	a.turn(CancelEvent{Num: 1, Reply: func(error) {}})
	r.settle()
	if len(b.waiting()) != 0 || len(b.running) != 1 || len(b.stops) != 1 {
		t.Errorf("cancelled: %v wait, %d run, %d are stopped", b.waiting(), len(b.running), len(b.stops))
	}

	r = newFarRig(t, 0, 1)
	_, b = r.runFirst()
	b.turn(DrainEvent{Drain: Drain{On: true}, Done: func() {}})
	b.ticks(1)
	r.settle()
	if n := len(r.state.Assignments("b")); len(b.waiting()) != 0 || n != 1 {
		t.Errorf("drained: %v wait, %d are assigned", b.waiting(), n)
	}

	r = newFarRig(t, 0, 1)
	_, b = r.runFirst()
	started := len(b.history)
	b.boot()
	r.settle()
	if n := len(r.state.Assignments("b")); len(b.waiting()) != 0 || n != 1 || len(b.history) != started {
		t.Errorf("restarted: %v wait, %d are assigned, %d were started", b.waiting(), n, len(b.history)-started)
	}
}

// TestOwnUsersGoFirst: what they wait for begins before what is held ahead.
func TestOwnUsersGoFirst(t *testing.T) {
	r := newFarRig(t, 0, 1)
	_, b := r.runFirst()
	b.core.machines.Take("b-local", executor.Resources{MilliCPU: 1000}, true)
	r.now = r.now.Add(time.Millisecond)
	b.endAfter(b.only(), time.Millisecond)
	if len(b.running) != 0 || len(b.waiting()) != 2 {
		t.Errorf("%d run beside the own one, %v wait", len(b.running), b.waiting())
	}
}

// TestAheadDoesNotQueueForBounds: where each start waits for its bound to be ordered, tasks ahead do so together.
func TestAheadDoesNotQueueForBounds(t *testing.T) {
	r := newFarRig(t, 0, 4)
	a, b := r.sites[0], r.sites[1]
	b.core.bounds.SetGuard("local", Guard{Bound: func(executor.Task) (time.Duration, bool) { return time.Second, true }})
	a.submit(strings.Replace(shortArray, `"count":6`, `"count":40,"timeout":"1s"`, 1), "")
	r.settle()
	began := r.now
	for len(b.history) < 40 {
		for id := range b.running {
			b.endAfter(id, 10*time.Millisecond)
		}
		r.settle()
	}
	if took := r.now.Sub(began); took > 40*r.far/2 {
		t.Errorf("the starts of 40 tasks at 4 cores took %s, at %s for each message", took, r.far)
	}
}

// TestAheadIsNotDeclined: what arrives ahead while the site says that it wants no more is handed back, so that its job
// is not barred.
func TestAheadIsNotDeclined(t *testing.T) {
	r := newFarRig(t, 0, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(shortArray, "")
	r.settle()
	first := b.only()
	for range 8 {
		b.core.ahead.Took(0)
	}
	r.now = r.now.Add(100 * time.Millisecond)
	b.endAfter(first, 100*time.Millisecond)
	b.ticks(1)
	if b.core.ahead.Ms() != 0 {
		t.Fatalf("b still tells %d ms", b.core.ahead.Ms())
	}
	var events []fsm.Event
	r.state.Observe(&events)
	r.settle()
	b.ticks(2)
	r.settle()
	if slices.ContainsFunc(events, func(e fsm.Event) bool { return e.End == fsm.EndDeclined }) {
		t.Error("it was declined")
	}
	if n := len(r.state.Assignments("b")); n != 1 || len(b.waiting()) != 0 {
		t.Errorf("%d are assigned, %v wait", n, b.waiting())
	}
}
