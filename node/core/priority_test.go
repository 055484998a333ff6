package core

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

var errUnanswered = errors.New("unanswered")

// askPriority asks for a priority of jobs, and orders nothing. The answers come into the list.
func (s *rigSite) askPriority(priority int32, ids ...command.JobID) (errs []error) {
	s.rig.t.Helper()
	ev := PriorityEvent{Priority: priority, Reply: func(i int, err error) { errs[i] = err }}
	for _, id := range ids {
		ev.Nums = append(ev.Nums, id.Num)
		errs = append(errs, errUnanswered)
	}
	s.turn(ev)
	return errs
}

// setPriority gives a job a priority, which must be accepted.
func (s *rigSite) setPriority(priority int32, ids ...command.JobID) {
	s.rig.t.Helper()
	errs := s.askPriority(priority, ids...)
	s.rig.settle()
	if err := errors.Join(errs...); err != nil {
		s.rig.t.Fatal(err)
	}
}

// nextOf ends the task that runs, and returns the job of which one runs then.
func (s *rigSite) nextOf() string {
	s.rig.t.Helper()
	s.finish(s.only(), 0)
	s.ticks(1)
	s.rig.settle()
	return s.only().Job
}

// TestPriorityInTheFederation: of what waits in the federation's queue the job with the greater priority begins first;
// what runs goes on, and what waits of the same job moves.
func TestPriorityInTheFederation(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.add(sleepJob)
	array := a.add(`{"command":["sleep","1"],"count":3}`).ID
	first, second, third := a.add(sleepJob).ID, a.add(sleepJob).ID, a.add(sleepJob).ID
	if got := a.nextOf(); got != array.String() {
		t.Fatalf("%s runs", got)
	}
	a.setPriority(5, third)
	a.setPriority(-5, array)
	for _, want := range []command.JobID{third, first, second, array, array} {
		if got := a.nextOf(); got != want.String() {
			t.Fatalf("%s runs, want %s", got, want)
		}
	}
	if v := r.job(third.String()); v.Spec.Priority != 5 {
		t.Errorf("shown with priority %d", v.Spec.Priority)
	}
	for id, want := range map[command.JobID]error{
		third: node.ErrEnded, {Site: "a", Num: 99}: node.ErrNotFound, array: nil,
	} {
		if err := a.askPriority(1, id)[0]; want != nil && !errors.Is(err, want) {
			t.Errorf("job %s: %v, want %v", id, err, want)
		}
	}
	r.settle()
	if a.core.priorities.Len() != 0 {
		t.Errorf("%d are left to change", a.core.priorities.Len())
	}
}

// TestPrioritiesOfManyJobs: thousands of jobs take one entry.
func TestPrioritiesOfManyJobs(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	spec, err := jobspec.ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	var ids []command.JobID
	a.turn(SubmitEvent{
		Reqs:  slices.Repeat([]node.Request{{Spec: spec}}, 2500),
		Reply: func(_ int, a node.Answer) { ids = append(ids, a.ID) },
	})
	r.settle()
	if len(ids) != 2500 {
		t.Fatalf("%d jobs", len(ids))
	}
	before := r.state.Index()
	a.setPriority(7, ids[1:]...)
	if n := r.state.Index() - before; n > 2 {
		t.Errorf("%d entries", n)
	}
	for _, id := range ids[1:] {
		if v := r.job(id.String()); v.Spec.Priority != 7 {
			t.Fatalf("job %s has priority %d", id, v.Spec.Priority)
		}
	}
}

// TestPriorityOutlivesTheBroker: what was recorded is ordered by the next run of the broker, and what was published
// meanwhile with the priority of before is changed then.
func TestPriorityOutlivesTheBroker(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.add(sleepJob)
	waits := a.add(sleepJob).ID
	i := a.submit(sleepJob, "") // on its way
	errs := a.askPriority(4, waits, a.answers[i].ID)
	if !errors.Is(errs[0], errUnanswered) {
		t.Fatalf("answered with nothing ordered: %v", errs)
	}
	for range 2 {
		a.boot()
		r.settle()
	}
	if v := r.job(waits.String()); v.Spec.Priority != 4 {
		t.Errorf("its priority is %d", v.Spec.Priority)
	}
	a.wait(TickEvery)
	if n := a.core.priorities.Len(); n != 0 {
		t.Errorf("%d are left to change", n)
	}
}

// TestPriorityOfASentJob: the priority of a job that is being published changes right after that.
func TestPriorityOfASentJob(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.add(sleepJob)
	a.submit(sleepJob, "")
	sent := command.JobID{Site: "a", Num: 2}
	if err := a.askPriority(6, sent)[0]; err != nil {
		t.Fatal(err)
	}
	r.settle()
	a.wait(TickEvery)
	if v := r.job(sent.String()); v.Spec.Priority != 6 {
		t.Errorf("its priority is %d", v.Spec.Priority)
	}
}

// TestPriorityBeforeItsTurn: what a site keeps back is published in the order of its priorities, over restarts, and
// while other sites do not know the command.
func TestPriorityBeforeItsTurn(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	_, last := a.floodOf("alice", 20, 1)
	a.setPriority(9, last.ID)
	a.setPriority(3, command.JobID{Site: "a", Num: 19})
	a.boot()
	r.settle()
	if v, ok := a.core.Own().Job(last.ID.Num); !ok || v.Spec.Priority != 9 {
		t.Errorf("shown: %+v", v)
	}
	if n := a.until(last.ID, 6); n > 4 {
		t.Errorf("%d others ran before", n)
	}
	if v := r.job(last.ID.String()); v.Spec.Priority != 9 {
		t.Errorf("published with priority %d", v.Spec.Priority)
	}
	a.until(command.JobID{Site: "a", Num: 19}, 3)
}

// TestPrioritiesLeaveWithTheirJobs: while other sites do not know the command, what was published with the priority
// that was wanted, or has ended, is not remembered. It was, until all brokers were upgraded.
func TestPrioritiesLeaveWithTheirJobs(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	_, last := a.floodOf("alice", 9, 1)
	a.setPriority(9, last.ID)
	a.setPriority(-1, command.JobID{Site: "a", Num: 8})
	a.boot()
	a.until(last.ID, 9)
	a.until(command.JobID{Site: "a", Num: 8}, 9)
	a.finish(a.only(), 0)
	r.settle()
	if n := a.core.priorities.Len(); n != 0 {
		t.Errorf("%d are left to change", n)
	}
	if words := a.core.Priority(last.ID.Num); words != "" {
		t.Error(words)
	}
}

// TestPriorityAtHome: what waits at home while the site is alone begins in the order of its priorities, over restarts.
func TestPriorityAtHome(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.reopen()
	for range 4 {
		a.submit(sleepJob, "")
	}
	third, second := command.JobID{Site: "a", Num: 3}, command.JobID{Site: "a", Num: 2}
	if err := errors.Join(append(a.askPriority(2, third), a.askPriority(-2, second)...)...); err != nil {
		t.Fatal(err)
	}
	a.submit(`{"command":["sleep","1"],"priority":1}`, "")
	a.reopen()
	for _, want := range []uint64{3, 5, 4, 2} {
		a.finish(a.only(), 0)
		if got := a.only().Job; got != fmt.Sprintf("a.%d", want) {
			t.Fatalf("%s runs, want a.%d", got, want)
		}
	}
}

// TestPrioritiesWhileHomeJobsMove: once there is a quorum, what has not begun at home is published, also beside a job
// that nobody can run, whose tasks are looked at again. It was sorted among the others while these were moved, which
// lost one of them.
func TestPrioritiesWhileHomeJobsMove(t *testing.T) {
	r := pickyRig(t, 2)
	a := r.sites[0]
	a.refuse = nil
	held, lost := a.reopen()
	a.submit(`{"command":["sleep","1"],"retry":{"max_attempts":2}}`, "")
	a.refuse = errForbidden
	a.submit(`{"image":"evil","sites":{"only":["a"]},"priority":-5}`, "")
	a.refuse = nil
	a.submit(sleepJob, "")
	a.submit(`{"command":["sleep","1"],"priority":9}`, "")
	a.submit(`{"command":["sleep","1"],"priority":8}`, "")
	for id := range a.running {
		if id.Job == "a.1" {
			held, lost = nil, nil
			a.finish(id, 1)
		}
	}
	if got := a.core.home.Waiting(); got != 3 {
		t.Fatalf("%d wait at home", got)
	}
	a.register(held, lost)
	a.lease(time.Hour)
	r.settle()
	for len(a.running) > 0 {
		for id := range a.running {
			a.finish(id, 0)
			break
		}
		a.ticks(1)
		r.settle()
	}
	for num := range uint64(5) {
		id := command.JobID{Site: "a", Num: num + 1}
		if state, why := a.sees(id); (state == "succeeded") == (num == 1) {
			t.Errorf("job %s is %s: %s", id, state, why)
		}
	}
}

// TestPriorityOfWhatWaitsForOthers: a job that waits for another one is published with the priority that it was given.
func TestPriorityOfWhatWaitsForOthers(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	on := a.add(sleepJob).ID
	other := a.add(sleepJob).ID
	waits := a.add(afterJob(on.String())).ID
	a.setPriority(3, waits)
	a.boot()
	r.settle()
	if got := a.nextOf(); got != waits.String() {
		t.Errorf("%s runs, want %s before %s", got, waits, other)
	}
	if v := r.job(waits.String()); v.Spec.Priority != 3 {
		t.Errorf("published with priority %d", v.Spec.Priority)
	}
}

// TestPriorityWithoutAQuorum: a broker that starts with an older state than it had, and finds no quorum for long,
// forgets no priority that was wanted, and does not call a job unknown that it may not have seen yet.
func TestPriorityWithoutAQuorum(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	older, err := fsm.Restore(bytes.NewReader(r.copied()))
	if err != nil {
		t.Fatal(err)
	}
	a.add(sleepJob)
	waits := a.add(sleepJob).ID
	a.askPriority(4, waits)
	published := record.Remove(record.BucketPublishing, record.Number(waits.Num))
	if err = a.journal.Commit([]record.Write{published}); err != nil {
		t.Fatal(err)
	}
	a.reopen()
	newer := r.state
	r.state = older
	a.ticks(200)
	if err := a.askPriority(5, waits)[0]; !errors.Is(err, node.ErrNotReady) {
		t.Errorf("answered: %v", err)
	}
	r.state = newer
	a.boot()
	r.settle()
	a.wait(TickEvery)
	if v := r.job(waits.String()); v.Spec.Priority != 4 {
		t.Errorf("its priority is %d", v.Spec.Priority)
	}
}

// TestPriorityNeedsAllBrokers: before all brokers know the command, the priority of what the federation has stays.
func TestPriorityNeedsAllBrokers(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.add(sleepJob)
	waits := a.add(sleepJob).ID
	if err := a.askPriority(1, waits)[0]; !errors.Is(err, node.ErrNotReady) || !strings.Contains(err.Error(), "it is at 1") {
		t.Error(err)
	}
}

// TestPriorityEvents: each change is told once, wherever the job waits.
func TestPriorityEvents(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	var told []node.Event
	a.core.SetEmit(func(list []node.Event) { told = append(told, list...) })
	var state []fsm.Event
	r.state.Observe(&state)
	on := a.add(sleepJob).ID
	queued, waits := a.add(sleepJob).ID, a.add(afterJob(on.String())).ID
	a.setPriority(3, on, queued, waits)
	a.setPriority(3, on, queued, waits)
	var got []string
	for _, e := range told {
		state = append(state, e.Event)
	}
	for _, e := range state {
		if e.Kind == fsm.EventJobPrioritized {
			got = append(got, e.Job.String()+" "+e.Reason)
		}
	}
	slices.Sort(got)
	if fmt.Sprint(got) != "[a.1 priority 3, was 0 a.2 priority 3, was 0 a.3 priority 3, was 0]" {
		t.Error(got)
	}
}
