package core

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// checkReconciled fails if a comparison of all assignments with all attempts
// finds anything that looking at the changes has not. So every history that a rig
// plays, the disorder's random ones among them, shows that both are the same.
func (s *rigSite) checkReconciled() {
	s.rig.t.Helper()
	c := s.core
	if c.incarnation == 0 || c.unstopped { // a failed stop is tried again with a tick
		return
	}
	fx, waiting := &Effects{}, c.out.Len()
	all, _ := s.rig.state.AssignmentsSince(s.name, 0)
	pledged := c.bounds.Len()
	c.compare(all, s.rig.state, fx)
	if n := len(fx.Starts) + len(fx.Stops) + len(fx.Writes) + c.reports.Ends() + c.bounds.Opened() + len(c.again) +
		c.out.Len() - waiting; n > 0 {
		s.rig.t.Fatalf("site %s at entry %d: looking at all finds more than looking at what changed: starts %v, stops %v, %d ends, %d pledges, %d commands",
			s.name, c.seen, fx.Starts, fx.Stops, c.reports.Ends(), c.bounds.Opened(), c.out.Len()-waiting)
	}
	if n := c.bounds.Len(); n != pledged {
		s.rig.t.Fatalf("site %s holds %d pledges, %d of them for what is assigned", s.name, pledged, n)
	}
}

// counting counts what a core reads of its assignments.
type counting struct {
	*fsm.State
	read int
}

func (v *counting) AssignmentsSince(site string, entry uint64) ([]fsm.Assignment, bool) {
	as, whole := v.State.AssignmentsSince(site, entry)
	v.read += len(as)
	return as, whole
}

// What a site looks at grows with what changes, not with what it runs: n tasks
// that come one by one and end one by one cost n looks.
func TestReconcileLooksAtChanges(t *testing.T) {
	const n = 200
	r := newRig(t, command.DefaultParams(), n, 1)
	a, b := r.sites[0], r.sites[1]
	b.submit(`{"command":["true"]}`, "") // takes b's core
	for range n {
		b.submit(`{"command":["true"]}`, "")
		r.settle()
	}
	if len(a.running) != n {
		t.Fatalf("%d run at a, want %d", len(a.running), n)
	}
	v := &counting{State: r.state}
	turn := func(evs ...Event) *Effects {
		fx := &Effects{}
		for _, ev := range evs {
			a.core.Step(ev, v, fx)
		}
		a.core.Settle(v, fx)
		return fx
	}
	turn(StateEvent{})
	v.read = 0
	for id := range a.running {
		fx := turn(EndedEvent{id, executor.Result{}})
		turn(ResultEvent{Cmds: fx.Propose, Results: r.apply(fx.Propose...)})
	}
	if v.read != 0 {
		t.Errorf("its own %d reports cost a %d looks", n, v.read)
	}
	for i := range 100 {
		b.submit(`{"command":["true"]}`, "")
		b.turn(ResultEvent{Cmds: b.pending, Results: r.apply(b.pending...)})
		b.pending = nil
		fx := turn(StateEvent{})
		for _, ask := range fx.Asks { // one, and none once the key of such jobs is known
			fx = turn(r.keysOf(a, ask))
		}
		for _, st := range fx.Starts {
			turn(AcceptedEvent{st.ID}, StartedEvent{st.ID})
		}
		if v.read != i+1 {
			t.Fatalf("%d new assignments cost %d looks", i+1, v.read)
		}
	}
}

// What is to be stopped before its handler has it is stopped once it has.
func TestStopWaitsForTheHandler(t *testing.T) {
	for _, how := range []string{"cancelled", "requeued"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t, command.DefaultParams(), 1, 1)
			a, b := r.sites[0], r.sites[1]
			b.submit(`{"command":["true"]}`, "")
			b.submit(`{"command":["true"],"retry":{"on_loss":"immediate"}}`, "")
			r.apply(b.pending...)
			fx := &Effects{}
			a.core.Settle(r.state, fx)
			a.core.Step(r.keysOf(a, fx.Asks[0]), r.state, fx)
			a.core.Settle(r.state, fx)
			if len(fx.Starts) != 1 {
				t.Fatalf("%d start at a, want 1", len(fx.Starts))
			}
			id := fx.Starts[0].ID
			by, body := b, command.Body(&command.Cancel{Job: command.JobID{Site: "b", Num: 2}, Task: -1})
			if how == "requeued" { // it stands for whatever takes an attempt away
				ref := r.state.Assignments("a")[0].AttemptRef
				by, body = a, &command.Complete{Attempts: []command.Ended{{AttemptRef: ref, Outcome: command.Lost}}}
			}
			r.apply(command.Command{ID: command.ID{
				Site: by.core.site, Incarnation: by.core.incarnation,
				Seq: by.core.out.Seq() + 100,
			}, Body: body})
			a.turn(StateEvent{})
			if len(a.stops) != 0 {
				t.Fatal("stopped before the handler has it")
			}
			a.turn(AcceptedEvent{id})
			if !slices.Equal(a.stops, []executor.ID{id}) {
				t.Fatalf("stopped %v, want %v", a.stops, id)
			}
			a.turn(AcceptedEvent{id}, StateEvent{})
			if len(a.stops) != 1 {
				t.Fatalf("stopped %d times", len(a.stops))
			}
		})
	}
}

// An end without a start is reported once, however often the state changes
// before it is ordered.
func TestNeverStartedIsSaidOnce(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2, 1)
	a, b := r.sites[0], r.sites[1]
	a.core.lease.until = 0 // nothing foreign is started
	for range 3 {
		b.submit(`{"command":["true"]}`, "")
	}
	b.turn(ResultEvent{Cmds: b.pending, Results: r.apply(b.pending...)})
	b.pending = nil
	a.turn(StateEvent{})
	for _, num := range []uint64{2, 3} {
		b.turn(CancelEvent{Num: num, Reply: func(error) {}})
		b.turn(ResultEvent{Cmds: b.pending, Results: r.apply(b.pending...)})
		b.pending = nil
		a.turn(StateEvent{})
		a.core.seen = 0 // all is looked at
		a.turn(StateEvent{})
	}
	ends := []string{}
	for _, cmd := range a.pending {
		if c, ok := cmd.Body.(*command.Complete); ok {
			for _, e := range c.Attempts {
				ends = append(ends, fmt.Sprint(e.Job, e.Outcome))
			}
		}
	}
	if want := []string{"b.2 3", "b.3 3"}; !slices.Equal(ends, want) {
		t.Fatalf("ends %v, want %v", ends, want)
	}
	r.settle()
	if len(a.running) != 0 || len(a.core.returned) != 0 {
		t.Fatalf("%d run, %d are on their way back", len(a.running), len(a.core.returned))
	}
}

// The state may show a bound before its declaration's result is here: the result
// then has the assignment looked at again.
func TestBoundSeenBeforeItsResult(t *testing.T) {
	r, a, b := boundedRig(t, timedJob)
	r.order(a)
	mine := b.pending
	b.pending = nil
	results := r.apply(mine...)
	b.turn(StateEvent{})
	if len(b.running) != 0 {
		t.Fatal("started before it knows that its declaration was taken")
	}
	b.turn(ResultEvent{Cmds: mine, Results: results})
	if len(b.running) != 1 {
		t.Fatal("not started though the federation knows the bound")
	}
}
