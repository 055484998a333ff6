package core

import (
	"errors"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

const sleepJob = `{"command":["sleep","1"]}`

func TestJobRunsAtHomeWhenNothingWaits(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	a.submit(sleepJob, "")
	if got := a.answers[0]; got.Err != nil || got.Durability != node.DurableSite || got.ID.String() != "a.1" {
		t.Fatalf("answer = %+v, want a.1 durable at the site", got)
	}
	id := a.only()
	if _, known := r.state.Job(command.JobID{Site: "a", Num: 1}); known {
		t.Error("a home job is in the replicated state")
	}
	r.settle()
	site, _ := r.state.Site("a")
	if site.Exposed.MilliCPU != 1000 || site.Home.MilliCPU != 1000 {
		t.Errorf("exposed %d, home %d milli-cores while one of two cores runs at home", site.Exposed.MilliCPU, site.Home.MilliCPU)
	}
	a.finish(id, 0)
	r.settle()
	if site, _ = r.state.Site("a"); site.Exposed.MilliCPU != 2000 {
		t.Errorf("exposed %d milli-cores after the end, want all", site.Exposed.MilliCPU)
	}
	if view, _ := a.core.own.Job(1); view.State != "succeeded" {
		t.Errorf("job is %s, want succeeded", view.State)
	}
}

func TestOverflowRunsElsewhere(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 2)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(`{"command":["sleep","1"],"count":3}`, "")
	r.settle()
	if len(a.running) != 1 || len(b.running) != 2 {
		t.Fatalf("%d run at a and %d at b, want 1 and 2", len(a.running), len(b.running))
	}
	a.finish(a.only(), 0)
	r.settle()
	if len(a.running) != 1 {
		t.Fatal("the third task did not start on the core that became free")
	}
	for _, s := range r.sites {
		for id := range s.running {
			s.finish(id, 0)
		}
	}
	r.settle()
	if v := r.job("a.2"); v.State != fsm.TaskSucceeded || v.Counts[fsm.TaskSucceeded] != 3 {
		t.Errorf("job a.2 is %s with %v", v.State, v.Counts)
	}
	if a.core.attempts.Len()+b.core.attempts.Len()+len(a.ended)+len(b.ended) != 0 {
		t.Error("settled attempts are still held")
	}
}

// A job that fits is still published while an earlier one waits (event 1).
func TestNothingOvertakesTheQueue(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	a.submit(sleepJob, "")
	a.submit(`{"command":["true"],"resources":{"cpu":2}}`, "")
	r.settle()
	a.submit(sleepJob, "")
	r.settle()
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Errorf("the wide job is %s", v.State)
	}
	// a.3 went through the queue: it runs as a federation task.
	if v := r.job("a.3"); v.State == fsm.TaskFailed {
		t.Errorf("a.3 is %s", v.State)
	}
}

func TestHomeRunWinsAndAssignmentIsDeclined(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.submit(sleepJob, "") // home at b
	b.submit(sleepJob, "") // published; not ordered yet
	a.submit(sleepJob, "") // home at a, whose offer still stands as free
	r.settle()
	if len(a.running) != 1 || len(b.running) != 1 {
		t.Fatalf("%d run at a and %d at b, want one each", len(a.running), len(b.running))
	}
	if v := r.job("b.2"); v.State != fsm.Queued {
		t.Fatalf("the declined task is %s, want queued", v.State)
	}
	a.finish(a.only(), 0)
	r.settle()
	if id := a.only(); id.Job != "b.2" {
		t.Errorf("%s runs at a, want b.2", id)
	}
}

func TestRestartAdoptsAndStartsNothingTwice(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 2)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(`{"command":["sleep","9"],"count":2}`, "")
	r.settle()
	started := len(b.history)
	for id := range b.running { // one ends while the broker is down
		delete(b.running, id)
		b.ended[id] = executor.Result{Started: r.now, Run: time.Second}
		break
	}
	b.boot()
	r.settle()
	if len(b.history) != started {
		t.Errorf("the restart started %d attempts again", len(b.history)-started)
	}
	if v := r.job("a.2"); v.Counts[fsm.TaskSucceeded] != 1 || v.Counts[fsm.Running]+v.Counts[fsm.Assigned] != 1 {
		t.Errorf("counts after the restart: %v", v.Counts)
	}
	b.finish(b.only(), 0)
	r.settle()
	if v := r.job("a.2"); v.State != fsm.TaskSucceeded {
		t.Errorf("job is %s", v.State)
	}
}

func TestRestartWithoutSupervisorIsALoss(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	r.settle()
	lost := b.only()
	delete(b.running, lost) // the machine lost power
	b.boot()
	r.settle()
	again := b.only()
	if again.Attempt != 2 || again.Token <= lost.Token {
		t.Errorf("after the loss %s runs, want attempt 2 with a greater token than %d", again, lost.Token)
	}
	// The home task of a is lost, too, when a's machine loses power.
	clear(a.running)
	a.boot()
	r.settle()
	if id := a.only(); id.Job != "a.1" || id.Attempt != 2 {
		t.Errorf("%s runs at a, want the second attempt of a.1", id)
	}
}

func TestCrashBetweenSyncAndSendPublishesOnce(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	a.submit(sleepJob, "key-1")
	a.boot() // the proposal was never sent
	r.settle()
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Fatalf("a.2 is %s", v.State)
	}
	a.boot() // its record is gone or known: nothing comes twice
	r.settle()
	i := a.submit(sleepJob, "key-1")
	if got := a.answers[i]; !got.Replayed || got.ID.Num != 2 {
		t.Errorf("the key gives %+v, want a replay of a.2", got)
	}
	i = a.submit(`{"command":["false"]}`, "key-1")
	if got := a.answers[i]; !errors.Is(got.Err, node.ErrKeyReused) {
		t.Errorf("another body under the key: %v", got.Err)
	}
	r.now = r.now.Add(25 * time.Hour)
	a.turn(TickEvent{})
	if a.core.keys.Len() != 0 {
		t.Error("keys are held for more than a day")
	}
}

func TestRepeatWhilePublishingIsAnsweredOnce(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	first := a.submit(sleepJob, "k")
	second := a.submit(sleepJob, "k")
	if a.answers[second].Err == nil {
		t.Fatal("the repeat was answered before the job was durable")
	}
	r.settle()
	x, y := a.answers[first], a.answers[second]
	if x.ID != y.ID || x.Replayed || !y.Replayed || x.Durability != node.DurableFederation {
		t.Errorf("answers %+v and %+v", x, y)
	}
}

func TestCancelReachesEveryPlace(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "") // home
	a.submit(sleepJob, "") // at b
	a.submit(sleepJob, "") // queued
	r.settle()
	a.submit(sleepJob, "") // on its way
	for num := uint64(1); num <= 4; num++ {
		a.turn(CancelEvent{Num: num, Reply: func(err error) {
			if err != nil {
				t.Errorf("cancel a.%d: %v", num, err)
			}
		}})
	}
	r.settle()
	if len(a.stops) != 1 || len(b.stops) != 1 {
		t.Fatalf("stops: %v at a, %v at b; want one each", a.stops, b.stops)
	}
	for _, s := range []*rigSite{a, b} {
		id := s.only()
		delete(s.running, id)
		s.turn(EndedEvent{id, executor.Result{Cause: executor.Stopped, Started: r.now, Run: time.Second}})
	}
	r.settle()
	for _, id := range []string{"a.2", "a.3", "a.4"} {
		if v := r.job(id); v.State != fsm.TaskCancelled {
			t.Errorf("%s is %s", id, v.State)
		}
	}
	if view, _ := a.core.own.Job(1); view.State != "cancelled" {
		t.Errorf("a.1 is %s", view.State)
	}
	a.turn(CancelEvent{Num: 1, Reply: func(err error) {
		if !errors.Is(err, node.ErrEnded) {
			t.Errorf("second cancel: %v", err)
		}
	}})
}

func TestHomeTaskRetries(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(`{"command":["false"],"retry":{"max_attempts":2}}`, "")
	a.finish(a.only(), 1)
	again := a.only()
	if again.Attempt != 2 {
		t.Fatalf("attempt %d runs, want 2", again.Attempt)
	}
	a.finish(again, 1)
	if view, _ := a.core.own.Job(1); view.State != "failed" {
		t.Errorf("job is %s", view.State)
	}
	if len(a.running) != 0 {
		t.Error("a third attempt runs")
	}
}

func TestHomeRunsAreReportedExactlyOnce(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	ticks := func() { a.ticks(usageTicks) }
	a.submit(sleepJob, "")
	a.finish(a.only(), 0)
	a.boot() // rows survive
	ticks()
	a.boot() // a batch that was synced but never sent survives
	r.settle()
	a.boot()
	ticks()
	r.settle()
	ledger := r.state.Ledger()
	if len(ledger.Matrix) != 1 || ledger.Matrix[0].A != "1000000" {
		t.Errorf("matrix %+v, want one run of 1000 milli-cores for 1000 ms", ledger.Matrix)
	}
}

func TestWithoutQuorumTheAnswerSaysSite(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.promise()
	r.settle()
	if v := r.job("a.2"); v.State != fsm.Queued {
		t.Errorf("the job is %s once the order is back", v.State)
	}
}

// Found by making every lazy write be lost: the record of a settled attempt
// stays behind, and must not bring its task back.
func TestRestartLeavesEndedHomeTasksAlone(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	a.finish(a.only(), 0)
	a.submit(`{"command":["false"]}`, "")
	a.finish(a.only(), 1)
	a.boot()
	r.settle()
	if len(a.running) != 0 {
		t.Fatalf("%v runs again", a.only())
	}
	for num, want := range map[uint64]string{1: "succeeded", 2: "failed"} {
		if view, _ := a.core.own.Job(num); view.State != want {
			t.Errorf("a.%d is %s after the restart, want %s", num, view.State, want)
		}
	}
}

// Found by chaos: a broker that restarted had not applied its log yet, and gave
// a home task's next attempt a smaller token than the last one's.
func TestHomeTokenNeverFalls(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(`{"command":["false"],"retry":{"max_attempts":2}}`, "")
	first := a.only()
	ahead := r.state.Index() + 100
	a.core.home.Find(1).Tasks[0].Token = ahead // as seen before the restart
	a.finish(first, 1)
	if again := a.only(); again.Token < ahead {
		t.Errorf("token %d after %d", again.Token, ahead)
	}
}
