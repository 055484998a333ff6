package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// afterJob is a job of one core that waits for others.
func afterJob(after ...string) string {
	var list []string
	for _, a := range after {
		job, when, given := strings.Cut(a, ":")
		if !given {
			when = "ok"
		}
		list = append(list, fmt.Sprintf(`{"job":%q,"when":%q}`, job, when))
	}
	return `{"command":["sleep","1"],"after":[` + strings.Join(list, ",") + `]}`
}

// add submits a job that must be accepted.
func (s *rigSite) add(json string) node.Answer {
	s.rig.t.Helper()
	i := s.submit(json, "")
	s.rig.settle()
	a := s.answers[i]
	if a.Err != nil {
		s.rig.t.Fatal(a.Err)
	}
	return a
}

// sees returns the state of a job of the site and why it is in it, as people see them.
func (s *rigSite) sees(id command.JobID) (state, reason string) {
	if v, ok := s.rig.state.Job(id); ok {
		return v.State.String(), v.Reason
	}
	v, ok := s.core.Own().Job(id.Num)
	if !ok {
		return "unknown", ""
	}
	if v.Counts[node.Held] > 0 {
		return node.Held, v.Reason
	}
	return v.State, v.Reason
}

// wantState compares states of jobs.
func (s *rigSite) wantStates(want string, jobs ...node.Answer) {
	s.rig.t.Helper()
	var got []string
	for _, j := range jobs {
		state, _ := s.sees(j.ID)
		got = append(got, state)
	}
	if text := strings.Join(got, " "); text != want {
		s.rig.t.Fatalf("jobs are %s, want %s", text, want)
	}
}

// endOnly ends the only attempt that runs at the site, and orders what follows.
func (s *rigSite) endOnly(exit int) {
	s.rig.t.Helper()
	s.finish(s.only(), exit)
	s.rig.settle()
}

// TestChain: each job of a chain begins in the turn in which the one before has succeeded, at home or in the
// federation, and the broker may be killed in between.
func TestChain(t *testing.T) {
	for name, sites := range map[string]string{"at home": "", "in the federation": `,"sites":{"only":["b"]}`} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, command.DefaultParams(), 1, 1)
			a, at := r.sites[0], r.sites[0]
			if sites != "" {
				at = r.sites[1]
			}
			var jobs []node.Answer
			for i := range 5 {
				spec := sleepJob
				if i > 0 {
					spec = afterJob(jobs[i-1].ID.String())
				}
				jobs = append(jobs, a.add(strings.TrimSuffix(spec, "}")+sites+"}"))
			}
			if got := jobs[2]; got.State != "queued" || got.Durability != node.DurableSite ||
				got.Reason != "waits for "+jobs[1].ID.String()+" to succeed" {
				t.Errorf("answered %+v", got)
			}
			for i := range jobs {
				if i%2 == 1 {
					a.boot()
					r.settle()
				}
				if id := at.only(); id.Job != jobs[i].ID.String() {
					t.Fatalf("%s runs, want job %d", id, i)
				}
				at.endOnly(0)
			}
			a.wantStates("succeeded succeeded succeeded succeeded succeeded", jobs...)
		})
	}
}

// TestHeldTimeIsNoWait: at home as in the federation a job's wait is counted from when it may run, also over a restart:
// the ledger would charge for what it waited for.
func TestHeldTimeIsNoWait(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	first := a.add(sleepJob)
	second := a.add(afterJob(first.ID.String()))
	r.pass(time.Hour)
	a.endOnly(0)
	a.boot()
	r.settle()
	if id := a.only(); id.Job != second.ID.String() {
		t.Fatalf("%s runs", id)
	}
	r.pass(10 * time.Second)
	a.finish(a.only(), 0)
	a.ticks(usageTicks)
	rows := a.batch().Rows
	if last := rows[len(rows)-1]; last.Job != second.ID.Num || last.WaitMs > 10_000 {
		t.Errorf("reported %+v", rows)
	}
}

// TestConditions: a failure releases what asked for one, and what waits for any end; the others are cancelled with the
// reason, and so is what waits for those.
func TestConditions(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 8)
	a := r.sites[0]
	first := a.add(sleepJob)
	id := first.ID.String()
	ok, anyEnd, notOK := a.add(afterJob(id)), a.add(afterJob(id+":any")), a.add(afterJob(id+":notok"))
	next, last := a.add(afterJob(ok.ID.String())), a.add(afterJob(ok.ID.String()+":any"))
	both := a.add(afterJob(id+":any", anyEnd.ID.String()))
	a.wantStates("running held held held held held held", first, ok, anyEnd, notOK, next, last, both)
	a.endOnly(1)
	a.wantStates("failed cancelled running running cancelled running held", first, ok, anyEnd, notOK, next, last, both)
	for _, c := range []struct {
		job  node.Answer
		want string
	}{
		{ok, "waited in vain for " + id + " to succeed: it has failed"},
		{next, "waited in vain for " + ok.ID.String() + " to succeed: it was cancelled"},
		{both, "waits for " + anyEnd.ID.String() + " to succeed"},
	} {
		if _, reason := a.sees(c.job.ID); reason != c.want {
			t.Errorf("%s: %q, want %q", c.job.ID, reason, c.want)
		}
		if w, _ := a.core.Own().Why(c.job.ID.Num); !strings.Contains(w.Summary, c.want) {
			t.Errorf("why %s: %q", c.job.ID, w.Summary)
		}
	}
	a.boot()
	r.settle()
	a.wantStates("failed cancelled running running cancelled running held", first, ok, anyEnd, notOK, next, last, both)
	late := a.add(afterJob(id)) // what has ended otherwise already
	if late.State != "cancelled" || !strings.Contains(late.Reason, "it has failed") {
		t.Errorf("answered %+v", late)
	}
	if done := a.add(afterJob(id + ":notok")); done.State != "running" {
		t.Errorf("answered %+v", done)
	}
}

// TestBadDependenciesAreRefused: each refusal names the field and says why; nothing of it stays.
func TestBadDependenciesAreRefused(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a := r.sites[0]
	of := a.submitOne("alice", sleepJob)
	next := a.core.nextJob
	for after, want := range map[string]string{
		"a.99":                    "after: names no job that was accepted before",
		fmt.Sprintf("a.%d", next): "after: names no job that was accepted before", // itself
		"b.1":                     "after: must be a job of this broker's site a",
		"#1":                      "after: names a line, and this request is one job",
		of.ID.String():            "after: must be a job of your own",
	} {
		got := a.submitOne("bob", afterJob(after))
		bad, ok := errors.AsType[*jobspec.SpecError](got.Err)
		if !ok || !strings.HasPrefix(bad.Error(), want) || !strings.Contains(bad.Error(), after) {
			t.Errorf("%s: %+v, want %s", after, got, want)
		}
	}
	if a.core.nextJob != next || a.core.after.Held() != 0 || a.usersTasks("bob") != 0 {
		t.Error("something of what was refused is left")
	}
}

// TestLines: lines of one request wait for earlier ones of it, whatever became of those, and a repeat finds them again.
func TestLines(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	send := func() []node.Answer {
		lines := &node.Lines{}
		var got [6]node.Answer
		// Two parts, as the API sends them.
		for _, part := range [][]string{
			{sleepJob, afterJob("#1"), afterJob("#4")}, {afterJob("#2", "#1:any"), afterJob("#3"), afterJob("#6")},
		} {
			ev := SubmitEvent{}
			from := 0
			if len(part[0]) != len(sleepJob) {
				from = 3
			}
			for i, text := range part {
				spec, err := jobspec.ParseSpec([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				ev.Reqs = append(ev.Reqs, node.Request{
					Spec: spec, Key: "k", Meaning: spec.Meaning(), Line: uint32(from + i + 1), Lines: lines,
				})
			}
			ev.Reply = func(i int, a node.Answer) { got[from+i] = a }
			a.turn(ev)
		}
		r.settle()
		return got[:]
	}
	got := send()
	for i, want := range []string{
		"", "", "must name a line before this one, which is line 3", "", "names a line whose job was refused",
		"must name a line before this one, which is line 6",
	} {
		if (got[i].Err == nil) != (want == "") || want != "" && !strings.Contains(got[i].Err.Error(), want) {
			t.Errorf("line %d: %+v", i+1, got[i])
		}
	}
	again := send()
	for i := range got {
		if again[i].ID != got[i].ID || (again[i].Err == nil) != again[i].Replayed {
			t.Errorf("line %d again: %+v, first %+v", i+1, again[i], got[i])
		}
	}
	a.endOnly(0)
	a.endOnly(0)
	a.wantStates("succeeded succeeded running", got[0], got[1], got[3])
}

// TestCancelHeld: a held job is cancelled at once, and what waits for it follows; its user's quota has room again.
func TestCancelHeld(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	first := a.submitOne("alice", sleepJob)
	held := a.submitOne("alice", afterJob(first.ID.String()))
	next := a.submitOne("alice", afterJob(held.ID.String()))
	other := a.submitOne("alice", afterJob(held.ID.String()+":notok", first.ID.String()))
	if n := a.usersTasks("alice"); n != 4 {
		t.Errorf("alice has %d tasks", n)
	}
	a.boot() // counted again
	r.settle()
	if n := a.usersTasks("alice"); n != 4 {
		t.Errorf("after a start alice has %d tasks", n)
	}
	cancel := func(ev CancelEvent) (err error) {
		ev.Num, ev.Reply = held.ID.Num, func(e error) { err = e }
		a.turn(ev)
		return err
	}
	some, _ := jobspec.ParseIndices("0")
	if err := cancel(CancelEvent{Tasks: some}); !errors.Is(err, node.ErrNotReady) {
		t.Errorf("a task of it: %v", err)
	}
	if err := cancel(CancelEvent{At: "b"}); err != nil {
		t.Error(err)
	}
	a.wantStates("running cancelled cancelled held", first, held, next, other)
	if _, reason := a.sees(held.ID); reason != fsm.CancelledAt("b") {
		t.Errorf("reason %q", reason)
	}
	if err := cancel(CancelEvent{}); !errors.Is(err, node.ErrEnded) {
		t.Errorf("again: %v", err)
	}
	if err := cancel(CancelEvent{Tasks: some}); !errors.Is(err, node.ErrEnded) {
		t.Errorf("a task of it again: %v", err)
	}
	if n := a.usersTasks("alice"); n != 2 {
		t.Errorf("alice has %d tasks", n)
	}
	a.endOnly(0)
	a.wantStates("succeeded cancelled cancelled running", first, held, next, other)
}

// TestRetirementLosesNothing: an outcome is known though its job is no longer kept, also after a start; what was not
// seen before ends what waits for success, and releases what waits for any end.
func TestRetirementLosesNothing(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 4)
	a := r.sites[0]
	first, slow := a.add(sleepJob), a.add(sleepJob)
	id := first.ID.String()
	both := a.add(afterJob(id, slow.ID.String()))
	for attempt := range a.running {
		if attempt.Job == id {
			a.finish(attempt, 0)
			break
		}
	}
	r.settle()
	a.core.home.Forget(first.ID.Num, &Effects{})
	fx := &Effects{}
	a.core.after.FlushEvents(fx)
	if got := a.submitOne("", afterJob(id)); got.Err != nil || got.State == "cancelled" {
		t.Errorf("after what is known of it: %+v", got)
	}
	a.wantStates("held", both)
}

// TestOutcomeIsKeptOverAStart: what was seen of a job that is no longer kept counts after a start of the broker, too.
func TestOutcomeIsKeptOverAStart(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 4)
	a := r.sites[0]
	first := a.add(sleepJob)
	a.endOnly(0)
	slow := a.add(sleepJob)
	both := a.add(afterJob(first.ID.String(), slow.ID.String()))
	fx := &Effects{}
	a.core.home.Forget(first.ID.Num, fx)
	if err := a.journal.Commit(fx.Writes); err != nil {
		t.Fatal(err)
	}
	a.boot()
	a.ticks(150) // longer than somebody may be missing
	a.endOnly(0)
	a.wantStates("unknown succeeded running", first, slow, both)
}

// TestForgotten: a job that nobody knows any more, and whose end was not seen, keeps nobody waiting.
func TestForgotten(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	first := a.add(sleepJob)
	id := first.ID.String()
	ok, anyEnd, notOK := a.add(afterJob(id)), a.add(afterJob(id+":any")), a.add(afterJob(id+":notok"))
	clear(a.running)
	a.core.home.Forget(first.ID.Num, &Effects{})
	a.ticks(2)
	a.wantStates("held held held", ok, anyEnd, notOK)
	a.ticks(int(10*time.Second/TickEvery) + 1)
	r.settle()
	if _, reason := a.sees(ok.ID); !strings.Contains(reason, "is no longer kept: how it ended was not seen") {
		t.Errorf("reason %q", reason)
	}
	if state, _ := a.sees(notOK.ID); state != "cancelled" {
		t.Errorf("state %s", state)
	}
	if state, _ := a.sees(anyEnd.ID); state == node.Held {
		t.Errorf("state %s", state)
	}
	if got := a.submitOne("", afterJob(first.ID.String())); got.Err == nil || !strings.Contains(got.Err.Error(), "no longer kept") {
		t.Errorf("one more: %+v", got)
	}
}

// TestHeldNumbersStay: a number above a held job is not settled, so that the state takes the job when it is released.
func TestHeldNumbersStay(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	const there = `,"sites":{"only":["b"]}}`
	first := a.add(strings.TrimSuffix(sleepJob, "}") + there)
	held := a.add(strings.TrimSuffix(afterJob(first.ID.String()), "}") + there)
	for range 3 {
		a.add(strings.TrimSuffix(sleepJob, "}") + there)
	}
	a.boot()
	r.settle()
	for range 4 {
		b.endOnly(0)
	}
	if id := b.only(); id.Job != held.ID.String() {
		t.Errorf("%s runs, want %s", id, held.ID)
	}
}

// TestFanIsReleasedInParts: what waits for one job is released by the thousand, and published in few commands.
func TestFanIsReleasedInParts(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	first := a.add(sleepJob)
	spec, err := jobspec.ParseSpec([]byte(afterJob(first.ID.String())))
	if err != nil {
		t.Fatal(err)
	}
	const fan = 2500
	ev := SubmitEvent{Reply: func(_ int, a node.Answer) {
		if a.Err != nil {
			t.Error(a.Err)
		}
	}}
	for range fan {
		ev.Reqs = append(ev.Reqs, node.Request{Spec: spec})
	}
	a.turn(ev)
	if n := a.core.after.Held(); n != fan {
		t.Fatalf("%d are held", n)
	}
	id := a.only()
	delete(a.running, id)
	commands := 0
	a.turn(EndedEvent{id, executor.Result{Started: r.now, Run: time.Second}})
	for turns := 0; a.core.after.Held() > 0; turns++ {
		if turns > fan/maxFollowing {
			t.Fatalf("%d are held after %d turns", a.core.after.Held(), turns)
		}
		commands += len(a.pending)
		r.settle()
		a.turn(StateEvent{})
	}
	if commands += len(a.pending); commands > 20 {
		t.Errorf("%d commands", commands)
	}
}

// TestReleasedJobStandsInItsPlace: a job that began at home after younger ones was listed behind them, and not found
// when it was to be forgotten. The property test found it.
func TestReleasedJobStandsInItsPlace(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	first := a.add(sleepJob)
	held := a.add(afterJob(first.ID.String()))
	second := a.add(sleepJob)
	for id := range a.running {
		if id.Job == first.ID.String() {
			a.finish(id, 0)
			break
		}
	}
	r.settle()
	a.wantStates("succeeded running running", first, held, second)
}

// TestEndedJobsKnowTheirFollowers: an ended job's page did not show what began after it. Who has waited for a job is
// remembered, also if it waits for others still or was cancelled, and by a started broker of those that wait still.
func TestEndedJobsKnowTheirFollowers(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	first := a.add(sleepJob)
	second, third := a.add(afterJob(first.ID.String())), a.add(afterJob(first.ID.String()+":any"))
	fourth := a.add(afterJob(first.ID.String(), second.ID.String()))
	a.turn(CancelEvent{Num: third.ID.Num, Reply: func(error) {}})
	followers := func() (list []command.JobID, waiting, all int) {
		t.Helper()
		d := a.core.Dependencies(first.ID.Num, 10)
		few := a.core.Dependencies(first.ID.Num, 1)
		if len(few.Waiting) > 1 || len(few.Followed) > 1 || few.All != d.All {
			t.Errorf("of one: %+v, of ten: %+v", few, d)
		}
		return d.Followed, d.All, d.FollowedAll
	}
	if list, waiting, all := followers(); waiting != 2 || all != 1 || !slices.Equal(list, []command.JobID{third.ID}) {
		t.Errorf("before its end %d wait, %v of %d have waited", waiting, list, all)
	}
	a.finish(a.only(), 0)
	r.settle()
	want := []command.JobID{third.ID, second.ID, fourth.ID}
	if list, waiting, all := followers(); waiting != 0 || all != 3 || !slices.Equal(list, want) {
		t.Errorf("after its end %d wait, %v of %d have waited", waiting, list, all)
	}
	a.boot()
	r.settle()
	if list, _, all := followers(); all != 1 || !slices.Equal(list, []command.JobID{fourth.ID}) {
		t.Errorf("started again: %v of %d have waited", list, all)
	}
}
