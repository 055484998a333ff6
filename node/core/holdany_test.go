package core

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// mustHold holds a job or lets it go, and orders what follows.
func (s *rigSite) mustHold(id command.JobID, hold bool) {
	s.rig.t.Helper()
	if err := s.setHold(id, hold); err != nil {
		s.rig.t.Fatal(err)
	}
	s.rig.settle()
}

// TestHoldOfAPlainJob: of a job without gates in the federation's queue nothing begins while it is held, also after a
// restart, and no task that fails is tried again; what runs goes on. Let go, it has its place of before.
func TestHoldOfAPlainJob(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.add(sleepJob)
	job := a.add(`{"command":["sleep","1"],"count":3,"retry":{"max_attempts":2}}`).ID
	later := a.add(`{"command":["sleep","1"],"count":2}`).ID
	if got := a.nextOf(); got != job.String() {
		t.Fatalf("%s runs", got)
	}
	a.mustHold(job, true)
	if c := r.job(job.String()).Counts; c[fsm.Held] != 2 || c[fsm.Running]+c[fsm.Assigned] != 1 {
		t.Fatalf("held: %v", c)
	}
	a.boot()
	r.settle()
	a.finish(a.only(), 1)
	r.settle()
	if got := a.only().Job; got != later.String() {
		t.Fatalf("%s runs", got)
	}
	want := "tasks held: 3 held by hand, until cloudshare release"
	if c := r.job(job.String()).Counts; c[fsm.Held] != 3 || a.core.Gates(job.Num) != want {
		t.Fatalf("held: %v, %q", c, a.core.Gates(job.Num))
	}
	a.mustHold(job, false)
	for _, want := range []command.JobID{job, job, job, later} {
		if got := a.nextOf(); got != want.String() {
			t.Fatalf("%s runs, want %s", got, want)
		}
	}
	if v := r.job(job.String()); v.State != fsm.TaskSucceeded {
		t.Errorf("%v: %v", v.State, v.Counts)
	}
}

// TestHoldOfARunningJob: while all of a job runs it is held all the same: what fails is not tried again.
func TestHoldOfARunningJob(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	job := a.add(`{"command":["sleep","1"],"sites":{"only":["b"]},"retry":{"max_attempts":2}}`).ID
	a.mustHold(job, true)
	b.finish(b.only(), 1)
	r.settle()
	if c := r.job(job.String()).Counts; c[fsm.Held] != 1 || len(b.running) != 0 {
		t.Fatalf("%v", c)
	}
	a.mustHold(job, false)
	b.finish(b.only(), 0)
	r.settle()
	if v := r.job(job.String()); v.State != fsm.TaskSucceeded || a.core.gates.Len() != 0 {
		t.Errorf("%v, %d are known", v.State, a.core.gates.Len())
	}
}

// TestHoldOnItsWay: a job that is held while it is published, kept back, or waits for another one begins nothing until
// it is let go, whatever becomes of its broker.
func TestHoldOnItsWay(t *testing.T) {
	for name, submit := range map[string]func(a *rigSite) command.JobID{
		"being published": func(a *rigSite) command.JobID {
			a.submit(sleepJob, "")
			return command.JobID{Site: "a", Num: 2}
		},
		"kept back": func(a *rigSite) command.JobID {
			_, last := a.floodOf("alice", 9, 1)
			return last.ID
		},
		"waits for another": func(a *rigSite) command.JobID { return a.add(afterJob("a.1")).ID },
	} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dies: %t", name, dies), func(t *testing.T) {
				r := gatedRig(t, command.DefaultParams(), 1)
				a := r.sites[0]
				a.add(sleepJob)
				id := submit(a)
				if err := a.setHold(id, true); err != nil {
					t.Fatal(err)
				}
				if dies {
					a.boot()
				}
				r.settle()
				for range 12 {
					if len(a.running) == 0 {
						break
					}
					a.finish(a.only(), 0)
					a.ticks(11)
					r.settle()
				}
				if n := len(a.tasksOf(id)); n != 0 || r.job(id.String()).Counts[fsm.Held] != 1 {
					t.Fatalf("%d tasks run: %v", n, r.job(id.String()).Counts)
				}
				a.mustHold(id, false)
				a.finish(a.only(), 0)
				r.settle()
				if v := r.job(id.String()); v.State != fsm.TaskSucceeded {
					t.Error(v.State)
				}
			})
		}
	}
}

// TestHoldAtHome: of a job at home nothing begins while it is held, also after a restart; others do.
func TestHoldAtHome(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.reopen()
	a.submit(`{"command":["sleep","1"],"retry":{"max_attempts":2}}`, "")
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	first, second := command.JobID{Site: "a", Num: 1}, command.JobID{Site: "a", Num: 2}
	for _, id := range []command.JobID{first, second} {
		if err := a.setHold(id, true); err != nil {
			t.Fatal(err)
		}
	}
	a.finish(a.only(), 1)
	held, lost := a.reopen()
	if got := a.only().Job; got != "a.3" {
		t.Fatalf("%s runs", got)
	}
	if state, why := a.sees(first); state != node.Held || why != "held by hand, until cloudshare release" {
		t.Errorf("%s, %q", state, why)
	}
	a.register(held, lost)
	r.settle()
	if _, known := r.state.Job(second); known {
		t.Error("it was published while it was held")
	}
	a.finish(a.only(), 0)
	for _, id := range []command.JobID{first, second} {
		a.mustHold(id, false)
		a.finish(a.only(), 0)
		r.settle()
	}
	if a.core.gates.Len() != 0 || len(a.running) != 0 {
		t.Errorf("%d are known", a.core.gates.Len())
	}
}

// TestHeldJobsGainNoTurn: a user who holds whatever is published, so that more is, and lets all of it go at once, keeps
// no other user from beginning: what is let go stands behind who has used less.
func TestHeldJobsGainNoTurn(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.floodOf("alice", 6, 3)
	var held []command.JobID
	for num := range uint64(6) {
		id := command.JobID{Site: "a", Num: num + 1}
		if v, _ := r.state.Job(id); v.Counts[fsm.Queued] != 2 {
			t.Fatalf("job %s: %v", id, v.Counts)
		}
		a.mustHold(id, true)
		held = append(held, id)
		if num < 5 {
			a.finishOne()
		}
	}
	bobs := a.submitOne("bob", sleepJob).ID
	for _, id := range held {
		a.mustHold(id, false)
	}
	if n := a.until(bobs, 12); n > 1 { // what runs goes on
		t.Errorf("%d of alice's tasks begin before bob's", n)
	}
}

// TestCancelOfScatteredTasks: what is remembered of tasks that were cancelled one by one before the federation has
// their job is bounded; stretches that touch are one, and the rest of the job can be cancelled still.
func TestCancelOfScatteredTasks(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.add(sleepJob)
	id := a.add(`{"command":["true"],"count":50000,"after":[{"job":"a.1","when":"ok"}]}`).ID
	cancel := func(from, step int) error {
		var list []string
		for i := range 1000 {
			list = append(list, strconv.Itoa(from+step*i))
		}
		return a.cancelSome(id, strings.Join(list, ","))
	}
	for part := range 10 {
		if err := cancel(2000*part+1, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := cancel(20_001, 2); !errors.Is(err, node.ErrFull) {
		t.Errorf("%v", err)
	}
	if err := cancel(2, 2); err != nil { // between others
		t.Error(err)
	}
	if v, _ := a.core.Own().Job(id.Num); v.Counts["cancelled"] != 11_000 {
		t.Errorf("shown: %v", v.Counts)
	}
}

// TestScatteredJobsAreNotHeld: a job that the state would not hold is refused at once, and nothing is recorded.
func TestScatteredJobsAreNotHeld(t *testing.T) {
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.add(sleepJob)
	const holes = command.MaxGateHoles + 1
	id := a.add(fmt.Sprintf(`{"command":["true"],"count":%d}`, 2*holes+1)).ID
	var odd []string
	for i := range holes {
		odd = append(odd, strconv.Itoa(2*i+1))
	}
	for part := range slices.Chunk(odd, 500) {
		_ = a.cancelSome(id, strings.Join(part, ",")) // answered when it is ordered
		r.settle()
	}
	if n := r.job(id.String()).Counts[fsm.TaskCancelled]; n != holes {
		t.Fatalf("%d are cancelled", n)
	}
	if err := a.setHold(id, true); !errors.Is(err, node.ErrScattered) || a.core.gates.Find(id.Num) != nil {
		t.Error(err)
	}
}

// TestHoldOfPlainJobsNeedsAllBrokers: before all brokers know how, a plain job is not held, which is said.
func TestHoldOfPlainJobsNeedsAllBrokers(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.add(sleepJob)
	err := a.setHold(a.add(sleepJob).ID, true)
	if !errors.Is(err, node.ErrNotReady) || !strings.Contains(err.Error(), "it is at 1") {
		t.Error(err)
	}
}

// cancelSome cancels tasks of a job.
func (s *rigSite) cancelSome(id command.JobID, tasks string) error {
	s.rig.t.Helper()
	x, err := jobspec.ParseIndices(tasks)
	if err != nil {
		s.rig.t.Fatal(err)
	}
	err = errUnanswered
	s.turn(CancelEvent{Num: id.Num, Tasks: x, Reply: func(e error) { err = e }})
	return err
}

// TestCancelTasksOfAHeldJob: of a job that waits for another one, or for its user's turn, single tasks are cancelled:
// they never begin, the others do, also when the broker is killed in between. The last one ends the job.
func TestCancelTasksOfAHeldJob(t *testing.T) {
	for name, submit := range map[string]func(a *rigSite) command.JobID{
		"kept back": func(a *rigSite) command.JobID {
			a.floodOf("alice", 5, 1)
			return a.submitOne("alice", `{"command":["sleep","1"],"count":4,"indices":"4-7"}`).ID
		},
		"waits for another": func(a *rigSite) command.JobID {
			return a.add(`{"command":["sleep","1"],"count":4,"indices":"4-7","after":[{"job":"a.1","when":"ok"}]}`).ID
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := gatedRig(t, command.DefaultParams(), 1)
			a := r.sites[0]
			a.add(sleepJob)
			id := submit(a)
			for _, tasks := range []string{"5", "7", "5,7,7"} {
				if err := a.cancelSome(id, tasks); (tasks == "5,7,7") != errors.Is(err, node.ErrEnded) {
					t.Fatalf("%s: %v", tasks, err)
				}
				a.boot()
			}
			if err := a.cancelSome(id, "3"); !errors.Is(err, node.ErrNotFound) {
				t.Error(err)
			}
			if v, ok := a.core.Own().Job(id.Num); !ok || v.Counts["cancelled"] != 2 {
				t.Errorf("shown: %v", v.Counts)
			}
			for range 20 {
				if len(a.running) == 0 {
					break
				}
				a.finish(a.only(), 0)
				a.ticks(11)
				r.settle()
			}
			c := r.job(id.String()).Counts
			if c[fsm.TaskSucceeded] != 2 || c[fsm.TaskCancelled] != 2 || a.core.gates.Len() != 0 {
				t.Errorf("%v, %d are known", c, a.core.gates.Len())
			}
			for _, ran := range a.history {
				if ran.Job == id.String() && ran.Task%2 == 1 {
					t.Errorf("%s began", ran)
				}
			}
		})
	}
	r := gatedRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.add(sleepJob)
	all := a.add(`{"command":["sleep","1"],"count":2,"after":[{"job":"a.1","when":"ok"}]}`).ID
	if err := errors.Join(a.cancelSome(all, "0"), a.cancelSome(all, "1")); err != nil {
		t.Fatal(err)
	}
	if state, _ := a.sees(all); state != "cancelled" {
		t.Errorf("all tasks were cancelled, the job is %s", state)
	}
}
