package node

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// Each test here is a bug that a reviewer or chaos found.

// A declined assignment stands in the state until its Decline is ordered. When
// room came back in between, it was started here, and then elsewhere, too.
func TestDeclinedAssignmentIsNotStarted(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.submit(sleepJob, "") // home at b
	b.submit(sleepJob, "") // published
	a.submit(sleepJob, "") // home at a, whose offer is not ordered yet
	offer := a.pending
	a.pending = nil
	mine := b.pending
	b.pending = nil
	b.turn(resultEvent{cmds: mine, results: r.apply(mine...)})
	a.turn(stateEvent{}) // a sees b.2 and declines
	a.pending = append(offer, a.pending...)
	a.finish(a.only(), 0)
	a.lease(2 * time.Hour) // has the assignments looked at again
	if len(a.running) != 0 {
		t.Fatalf("%s runs while its decline is under way", a.only())
	}
	b.finish(b.only(), 0)
	r.settle()
	if len(a.running)+len(b.running) != 1 {
		t.Errorf("b.2 runs %d times", len(a.running)+len(b.running))
	}
}

// A declined task must not lift other tasks' bars: two that fit nowhere went
// round and round, hundreds of entries a second.
func TestUnfitTasksComeToRest(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	for _, s := range r.sites {
		s.refuse = executor.ErrUnfit
	}
	r.sites[0].submit(`{"image":"alpine","count":3}`, "")
	r.settle()
	if v := r.job("a.1"); v.State != fsm.Queued {
		t.Errorf("job is %s", v.State)
	}
	if n := r.state.Index(); n > 60 {
		t.Errorf("%d entries until it came to rest", n)
	}
}

// What the registration names as held may be lost before it is executed: it was
// dropped without a report, and the same attempt was started again.
func TestHeldThenLostIsReported(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(`{"command":["true"],"retry":{"on_loss":"never"}}`, "")
	r.settle()
	id := b.only()
	held, lost := b.reopen()
	delete(b.running, id)
	res := executor.Result{Cause: executor.Fenced, Started: r.now, Run: time.Second}
	b.ended[id] = res
	b.turn(endedEvent{id, res}) // the fence passes while there is no quorum
	b.register(held, lost)
	b.lease(time.Hour)
	r.settle()
	if v := r.job("a.2"); v.State != fsm.TaskLost || len(b.history) != 1 {
		t.Errorf("job is %s after %d starts, want lost after one", v.State, len(b.history))
	}
}

// A wall clock that is set by decades made reports that no order would take.
func TestClockStepsStayReportable(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	r.settle()
	step := 56 * 365 * 24 * time.Hour
	for _, s := range []*rigSite{a, b} {
		id := s.only()
		delete(s.running, id)
		res := executor.Result{Started: r.now.Add(step), Run: time.Second}
		s.ended[id] = res
		s.turn(endedEvent{id, res})
		for range usageTicks {
			s.turn(tickEvent{})
		}
	}
	r.settle() // fails if a command does not decode
	if v := r.job("a.2"); v.State != fsm.TaskSucceeded {
		t.Errorf("job is %s", v.State)
	}
}

// A job that was acknowledged from the journal is kept when the queue is full.
func TestPromisedJobSurvivesAFullQueue(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	i := a.submit(sleepJob, "")
	r.now = r.now.Add(publishPatience)
	a.turn(tickEvent{})
	if a.answers[i].Durability != DurableSite {
		t.Fatalf("answer %+v", a.answers[i])
	}
	mine := a.pending
	a.pending = nil
	full := make([]fsm.Result, len(mine))
	for k, c := range mine {
		if _, submit := c.Body.(*fsm.Submit); submit {
			full[k].Jobs = []fsm.Code{fsm.TooManyJobs}
		}
	}
	a.turn(resultEvent{cmds: mine, results: full})
	if _, known := a.core.ownJob(2); !known {
		t.Fatal("the acknowledged job is gone")
	}
	a.boot()
	r.now = r.now.Add(fullPause)
	a.turn(tickEvent{})
	r.settle()
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Errorf("job is %s", v.State)
	}
}

// A site that is given up while it says goodbye has left all the same.
func TestLeaveEndsWhenTheSiteIsGivenUp(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	b := r.sites[1]
	var code fsm.Code
	done := false
	b.turn(askEvent(func(c *core) {
		c.gone = true
		c.out.add(&fsm.Leave{}, func(res fsm.Result, _ stateReader, _ *effects) { code, done = res.Code, true })
	}))
	r.lose(b)
	b.turn(stateEvent{})
	r.settle()
	if !done || code != fsm.OldIncarnation {
		t.Errorf("goodbye answered: %v, %s", done, code)
	}
}

// A site that cannot start anything hands work back and pauses, and fails none.
func TestSickSiteFailsNothing(t *testing.T) {
	r := newRig(t, fsm.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.refuse = errSick
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	r.settle()
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Fatalf("job is %s", v.State)
	}
	if v, _ := r.state.Site("b"); v.Exposed.MilliCPU != 0 {
		t.Error("a site that cannot start anything offers room")
	}
	b.refuse = nil
	r.now = r.now.Add(sickPause)
	b.turn(tickEvent{})
	r.settle()
	if id := b.only(); id.Job != "a.2" {
		t.Errorf("%s runs", id)
	}
}

// Many large jobs must go out in several calls: one over the log's limit stopped
// the broker, and again after each restart.
func TestCallsStayUnderTheLogsLimit(t *testing.T) {
	var cmds []fsm.Command
	for range 40 {
		cmds = append(cmds, fsm.Command{Body: &fsm.Submit{Jobs: []fsm.JobSpec{{Payload: make([]byte, 500_000)}}}})
	}
	for range 1000 {
		cmds = append(cmds, fsm.Command{Body: &fsm.Cancel{}})
	}
	calls := 0
	for ; len(cmds) > 0; calls++ {
		n := callSize(cmds)
		size := 0
		for _, c := range cmds[:n] {
			size += len(fsm.AppendCommand(nil, c))
		}
		if n == 0 || n > maxCallCommands || size > maxCallBytes+1<<20 {
			t.Fatalf("call of %d commands, %d bytes", n, size)
		}
		cmds = cmds[n:]
	}
	if calls < 10 {
		t.Errorf("%d calls", calls)
	}
}
