package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/record"
)

var oneInput = fmt.Sprintf(`"inputs":[{"path":"x","sha256":%q,"size":42}]`, strings.Repeat("ab", 32))

var (
	inputJob = `{"command":["true"],` + oneInput + `}`
	bothJob  = `{"command":["true"],` + oneInput + `,"outputs":{"paths":["y"],"max":"1Mi"}}`
)

// stagingRig has a task of a staging at b, whose files take their time; a's own machine is taken.
func stagingRig(t *testing.T, job string) (r *rig, a, b *rigSite, id executor.ID) {
	t.Helper()
	r = filesRig(t, 1, 1)
	a, b = r.sites[0], r.sites[1]
	b.files.hold = true
	a.submit(sleepJob, "")
	a.submit(job, "")
	r.settle()
	return r, a, b, b.onlyStaging()
}

// onlyStaging returns the one attempt whose files are fetched.
func (s *rigSite) onlyStaging() executor.ID {
	s.rig.t.Helper()
	if len(s.files.staging) != 1 || len(s.running) != 0 {
		s.rig.t.Fatalf("%d attempts are staging at %s, want 1, and %d run", len(s.files.staging), s.name, len(s.running))
	}
	for id := range s.files.staging {
		return id
	}
	panic("unreachable")
}

// TestStagingIsChargedFromItsBeginning: what holds a machine of another site's is paid for, from the moment at which
// its files began to come to its end, and what was measured goes with it.
func TestStagingIsChargedFromItsBeginning(t *testing.T) {
	r, _, b, id := stagingRig(t, bothJob)
	r.pass(20 * time.Second)
	b.here(id)
	r.pass(10 * time.Second)
	b.finish(id, 0)
	v := r.task("a.2")
	ended := b.pending[0].Body.(*command.Complete).Attempts[0]
	if ended.RunMs != 21_000 || ended.DelayMs != 9_000 || !ended.Ran {
		t.Errorf("20 s of staging and 1 s of 10 s: %+v", ended)
	}
	if m := ended.Measured; m.InBytes != 42 || m.OutBytes != 70 || ended.Output != b.files.output {
		t.Errorf("measured %+v, output %+v", m, ended.Output)
	}
	r.settle()
	if v = r.task("a.2"); !v.Delivering {
		t.Errorf("it is %+v", v)
	}
}

// TestCancelledWhileStaging: the fetching ends at once, nothing is started, and the time is paid for.
func TestCancelledWhileStaging(t *testing.T) {
	for _, race := range []string{"in the middle", "its files came at the same time"} {
		r, a, b, id := stagingRig(t, inputJob)
		r.pass(20 * time.Second)
		a.turn(CancelEvent{Num: 2, Reply: func(error) {}})
		if race != "in the middle" {
			b.files.staging, b.files.staged[id] = nil, true // it hears nothing of the stop any more
		}
		mine := a.pending
		a.pending = nil
		a.turn(ResultEvent{Cmds: mine, Results: r.apply(mine...)})
		b.turn(StateEvent{})
		if race != "in the middle" {
			b.turn(StagedEvent{ID: id})
		}
		if len(b.pending) != 1 {
			t.Fatalf("%s: proposed %v", race, b.pending)
		}
		ended := b.pending[0].Body.(*command.Complete).Attempts[0]
		if ended.Outcome != command.Stopped || ended.RunMs != 20_000 {
			t.Errorf("%s: %+v", race, ended)
		}
		r.settle()
		if v := r.task("a.2"); v.State != fsm.TaskCancelled || len(b.history) != 0 || b.core.attempts.Len() != 0 {
			t.Errorf("%s: it is %s, started %v, %d attempts left", race, v.State, b.history, b.core.attempts.Len())
		}
	}
}

// TestStagingSurvivesNoRestart: what was only staging is no loss, whatever ended the broker, and goes back.
func TestStagingSurvivesNoRestart(t *testing.T) {
	r, _, b, id := stagingRig(t, inputJob)
	b.boot()
	r.settle()
	again := b.onlyStaging()
	if v := r.task("a.2"); v.Losses != 0 || again.Attempt != id.Attempt+1 {
		t.Errorf("it has %d losses, and is staging as %s", v.Losses, again)
	}
	b.here(again)
	b.finish(again, 0)
	r.settle()
	if v := r.job("a.2"); v.State != fsm.TaskSucceeded {
		t.Errorf("it is %s", v.State)
	}
}

// TestStartedIsNoStaging: the record says so before the handler has it, so what died with the machine is a loss.
func TestStartedIsNoStaging(t *testing.T) {
	r, _, b, id := stagingRig(t, inputJob)
	b.here(id)
	clear(b.running)
	b.boot()
	r.settle()
	if v := r.task("a.2"); v.Losses != 1 {
		t.Errorf("it has %d losses", v.Losses)
	}
}

// TestLostWhileStaging: a site that was declared lost ends the fetching before it comes back.
func TestLostWhileStaging(t *testing.T) {
	r, a, b, id := stagingRig(t, inputJob)
	v, _ := r.state.Site("b")
	r.apply(command.Command{
		ID:   command.ID{Site: "a", Incarnation: a.core.incarnation, Seq: a.core.out.Seq() + 1},
		Body: &command.SiteLost{Site: "b", Incarnation: v.Incarnation, Term: 1},
	})
	b.turn(StateEvent{})
	if b.files.staging[id] || b.core.attempts.Find(id) != nil {
		t.Error("it is still staging")
	}
	if len(b.history) != 0 {
		t.Errorf("started %v", b.history)
	}
}

// TestStoppedBetweenStagingAndStart: a task was stopped whose files had come and that waited for its site's lease, or
// for its bound. Nobody ended it, so its machine stayed taken for as long as its site's broker ran.
func TestStoppedBetweenStagingAndStart(t *testing.T) {
	for wait, stage := range map[string]func(*rig, *rigSite, executor.ID){
		"the lease": func(r *rig, b *rigSite, id executor.ID) {
			r.now = r.now.Add(2 * time.Hour)
			b.here(id)
		},
		"its bound": func(r *rig, b *rigSite, id executor.ID) {
			b.guard = byTimeout
			b.core.bounds.SetGuard("local", b.guard)
			b.here(id)
			b.pending = nil // the declaration is on its way
		},
	} {
		r, a, b, id := stagingRig(t, strings.Replace(inputJob, `{`, `{"timeout":"10m",`, 1))
		stage(r, b, id)
		if at := b.core.attempts.Find(id); at == nil || !at.Staged || len(b.running) != 0 {
			t.Fatalf("it does not wait for %s: %+v", wait, at)
		}
		a.turn(CancelEvent{Num: 2, Reply: func(error) {}})
		mine := a.pending
		a.pending = nil
		a.turn(ResultEvent{Cmds: mine, Results: r.apply(mine...)})
		b.turn(StateEvent{})
		r.settle()
		if v := r.task("a.2"); v.State != fsm.TaskCancelled || b.core.attempts.Len() != 0 || len(b.history) != 0 {
			t.Errorf("waiting for %s: it is %s, %d attempts left, started %v", wait, v.State, b.core.attempts.Len(), b.history)
		}
		if site, _ := r.state.Site("b"); site.Assigned.MilliCPU != 0 {
			t.Errorf("waiting for %s: it still has %s", wait, site.Assigned)
		}
	}
}

// TestLostWhileAStagedTaskWaits: a site that was lost while a task of another one waited there for the lease never
// came back: it waited for the end of what had not begun.
func TestLostWhileAStagedTaskWaits(t *testing.T) {
	r, a, b, id := stagingRig(t, inputJob)
	r.now = r.now.Add(2 * time.Hour)
	b.here(id)
	v, _ := r.state.Site("b")
	r.apply(command.Command{
		ID:   command.ID{Site: "a", Incarnation: a.core.incarnation, Seq: a.core.out.Seq() + 1},
		Body: &command.SiteLost{Site: "b", Incarnation: v.Incarnation, Term: 1},
	})
	b.turn(StateEvent{})
	now, _ := r.state.Site("b")
	if now.State != fsm.Alive || now.Incarnation == v.Incarnation || b.core.attempts.Len() != 0 {
		t.Errorf("it is %s, incarnation %d after %d, %d attempts left",
			now.State, now.Incarnation, v.Incarnation, b.core.attempts.Len())
	}
}

// TestUnreachedOwnerIsNoMillionDeclines: a job of a million tasks whose owner cannot be reached costs its executor an
// entry for each of its machine's slots that was filled, and one for each rest of the owner.
func TestUnreachedOwnerIsNoMillionDeclines(t *testing.T) {
	r := filesRig(t, 1, 4)
	a, b := r.sites[0], r.sites[1]
	b.files.hold = true
	a.submit(sleepJob, "")
	a.submit(strings.Replace(inputJob, `{`, `{"count":1000000,`, 1), "")
	declines := 0
	for range 240 {
		for id := range b.files.staging {
			b.missing(id, inputs.Away, "its broker cannot be reached")
		}
		for _, cmd := range b.pending {
			if d, ok := cmd.Body.(*command.Decline); ok {
				declines++
				if !strings.Contains(d.Reason, "its broker cannot be reached") || !d.Unopened {
					t.Fatalf("declined: %+v", d)
				}
			}
		}
		r.settle()
		r.pass(time.Second)
		b.ticks(10)
	}
	if declines == 0 || declines > 60 {
		t.Errorf("%d declines in four minutes", declines)
	}
	if v := r.task("a.2"); v.Losses+v.Failures != 0 {
		t.Errorf("its first task has failures: %+v", v)
	}
}

// TestOwnerThatIsBackIsAskedAgain: what was declined for its owner comes back, and others' jobs never wait for it.
func TestOwnerThatIsBackIsAskedAgain(t *testing.T) {
	r, a, b, id := stagingRig(t, inputJob)
	b.missing(id, inputs.Away, "its broker cannot be reached")
	r.settle()
	if len(b.files.staging) != 0 {
		t.Fatal("it is staging again at once")
	}
	a.submit(sleepJob, "")
	r.settle()
	b.finish(b.only(), 0)
	r.settle()
	for range 30 {
		r.pass(time.Second)
		b.ticks(10)
		r.settle()
	}
	b.here(b.onlyStaging())
	if b.only().Job != "a.2" {
		t.Errorf("%s runs", b.only())
	}
}

// TestFaults: each has its end.
func TestFaults(t *testing.T) {
	for f, want := range map[inputs.Fault]fsm.TaskState{
		inputs.Refused: fsm.Queued, inputs.NoRoom: fsm.Queued, inputs.Unfit: fsm.Queued, inputs.Cancelled: fsm.Queued,
		inputs.Broken: fsm.TaskFailed,
	} {
		r, _, b, id := stagingRig(t, inputJob)
		r.pass(10 * time.Second)
		b.missing(id, f, "because")
		if want == fsm.TaskFailed {
			if ended := b.pending[0].Body.(*command.Complete).Attempts[0]; ended.RunMs != 10_000 || ended.Detail != "because" {
				t.Errorf("it has cost its owner nothing: %+v", ended)
			}
		}
		r.settle()
		if v := r.task("a.2"); v.State != want || v.Losses != 0 {
			t.Errorf("fault %d: %+v", f, v)
		}
	}
}

// TestStagedWaitsForTheLease: what came while the lease was over is started under the next one only, with its fence.
func TestStagedWaitsForTheLease(t *testing.T) {
	r, _, b, id := stagingRig(t, inputJob)
	r.now = r.now.Add(2 * time.Hour)
	b.here(id)
	if len(b.running) != 0 {
		t.Fatal("it was started without a lease")
	}
	b.lease(time.Minute)
	if fence := b.running[b.only()].Fence; fence != b.core.lease.until {
		t.Errorf("its fence is %d, the lease is until %d", fence, b.core.lease.until)
	}
}

// TestBoundIsDeclaredAfterStaging: the bound of a task that only its handler ends counts from its start.
func TestBoundIsDeclaredAfterStaging(t *testing.T) {
	r := filesRig(t, 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.guard, b.files.hold = byTimeout, true
	b.boot()
	r.settle()
	a.submit(sleepJob, "")
	a.submit(strings.Replace(inputJob, `{`, `{"timeout":"10m",`, 1), "")
	r.settle()
	id := b.onlyStaging()
	if as := r.state.Assignments("b"); as[0].BoundMs != 0 {
		t.Fatalf("bound before its files came: %+v", as)
	}
	r.pass(time.Hour)
	b.here(id)
	r.settle()
	b.only()
	if left := time.Duration(b.running[id].Fence - r.boottime()); left < timedBound {
		t.Errorf("it must be dead in %s", left)
	}
}

// TestEndsWaitForTheirOutputs: what a task has left is kept before anybody hears that it has ended, also when the
// broker starts again in between, and at home.
func TestEndsWaitForTheirOutputs(t *testing.T) {
	for _, home := range []bool{true, false} {
		r := filesRig(t, 1, 1)
		a, at := r.sites[0], r.sites[0]
		if !home {
			a.submit(sleepJob, "")
			at = r.sites[1]
		}
		a.submit(strings.Replace(bothJob, oneInput+",", "", 1), "")
		r.settle()
		var heard []Event
		r.late = func(_ *rigSite, ev Event) { heard = append(heard, ev) }
		id := at.only()
		at.finish(id, 0)
		if len(at.pending) != 0 || len(heard) != 1 {
			t.Fatalf("home %t: proposed %v, collecting %v", home, at.pending, heard)
		}
		heard = nil
		at.boot()
		if _, kept := at.ended[id]; !kept || len(heard) != 1 {
			t.Fatalf("home %t: the handler has forgotten it: %t; collecting %v", home, !kept, heard)
		}
		r.late = nil
		ev := heard[0].(CollectedEvent)
		at.turn(ev)
		if home {
			job, _ := a.core.own.Job(1)
			if job.State != "succeeded" {
				t.Errorf("it is %s", job.State)
			}
			continue
		}
		r.settle()
		if v := r.task("a.2"); !v.Delivering || v.Output != at.files.output {
			t.Errorf("it is %+v", v)
		}
	}
}

// TestMissingOutputsFail: what a task had to leave and did not is its failure, and what its site could not keep a loss.
func TestMissingOutputsFail(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r, _, b, id := stagingRig(t, bothJob)
		b.here(id)
		r.late = func(s *rigSite, ev Event) {
			r.late = nil
			got := ev.(CollectedEvent)
			if got.Output = (command.Output{}); lost {
				got.Lost = "disk is gone"
			} else {
				got.Failed = "output y is missing"
			}
			s.turn(got)
		}
		b.finish(id, 0)
		ended := b.pending[0].Body.(*command.Complete).Attempts[0]
		want := command.Failed
		if lost {
			want = command.Lost
		}
		if ended.Outcome != want || ended.Detail == "" || !ended.Output.IsZero() {
			t.Errorf("%+v", ended)
		}
	}
}

// TestFailureStaysOne: what its site could not keep of a failed attempt changes its reason, and nothing else; what it
// could keep of one that left too little is told.
func TestFailureStaysOne(t *testing.T) {
	left := command.Output{Manifest: [32]byte{7}, Size: 1, Bytes: 5}
	for exit, change := range []func(*CollectedEvent){
		0: func(ev *CollectedEvent) { ev.Failed, ev.Output = "output y is missing", left },
		3: func(ev *CollectedEvent) { ev.Lost, ev.Output = "no room for its outputs", command.Output{} },
	} {
		if change == nil {
			continue
		}
		r, _, b, id := stagingRig(t, bothJob)
		b.here(id)
		r.late = func(s *rigSite, ev Event) {
			r.late = nil
			got := ev.(CollectedEvent)
			change(&got)
			s.turn(got)
		}
		b.finish(id, exit)
		ended := b.pending[0].Body.(*command.Complete).Attempts[0]
		if ended.Outcome != command.Failed || ended.ExitCode != int32(exit) || (ended.Output == left) != (exit == 0) ||
			!strings.Contains(ended.Detail, "output") {
			t.Errorf("exit code %d: %+v", exit, ended)
		}
	}
}

// TestWhatStaysBehindIsTold: how many of its files could not travel stands behind whatever the attempt's end says, and
// changes nothing of that.
func TestWhatStaysBehindIsTold(t *testing.T) {
	const note = "1 output cannot travel: a symbolic link"
	for exit, outcome := range []command.Outcome{command.Succeeded, command.Failed} {
		r, _, b, id := stagingRig(t, bothJob)
		b.here(id)
		r.late = func(s *rigSite, ev Event) {
			r.late = nil
			got := ev.(CollectedEvent)
			got.Note = note
			s.turn(got)
		}
		b.finish(id, exit)
		ended := b.pending[0].Body.(*command.Complete).Attempts[0]
		if ended.Outcome != outcome || ended.Output != b.files.output || !strings.HasSuffix(ended.Detail, note) {
			t.Errorf("exit code %d: %+v", exit, ended)
		}
	}
}

// TestStagingRecord: a record of before files, and one of an attempt that is staging, are read.
func TestStagingRecord(t *testing.T) {
	_, _, b, id := stagingRig(t, inputJob)
	found := 0
	err := b.journal.Each(record.BucketAttempts, func(k, v []byte) error {
		if strings.Contains(string(v), `"staging":true`) && string(k) == id.String() {
			found++
		}
		return nil
	})
	if a := b.core.attempts.Find(id); err != nil || found != 1 || len(a.Inputs) != 1 ||
		a.Inputs[0].Size != 42 || a.Inputs[0] == (attempts.InputBlob{}) {
		t.Errorf("%d records, %v: %+v", found, err, a)
	}
}
