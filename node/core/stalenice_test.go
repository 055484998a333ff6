package core

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/publish"
)

// TestNiceOfWhatComesLate: a job is on its way for long, since the queue is full, while its user runs another one and
// becomes nicer. What was said of it meanwhile the state passed over, so it stayed before others' jobs, for as long as
// it waited.
func TestNiceOfWhatComesLate(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 4) // so that nothing is held
	a := r.sites[0]
	const atA = `{"command":["sleep","1"],"sites":{"only":["a"]}}`
	a.ticks(1)                // the window is that of five cores
	a.submitOne("alice", atA) // runs at home
	late := a.submitBy("alice", atA, "")
	r.now = r.now.Add(publish.Patience)
	a.turn(TickEvent{}) // it is promised
	refused := make([]command.Result, len(a.pending))
	for i := range refused {
		refused[i].Code = command.TooManyJobs
	}
	cmds := a.pending
	a.pending = nil
	a.turn(ResultEvent{Cmds: cmds, Results: refused})
	a.submitOne("bob", atA)
	for range 40 { // alice becomes nicer than bob, and then runs no more
		a.ticks(1)
		r.settle()
	}
	a.finish(a.only(), 0)
	if _, known := r.state.Job(a.answers[late].ID); known {
		t.Fatal("the job came though the queue is full")
	}
	for range 80 {
		a.ticks(1)
		r.settle()
	}
	carol := a.submitOne("carol", atA)
	a.ticks(20)
	r.settle()
	v, known := r.state.Job(a.answers[late].ID)
	if other, _ := r.state.Job(carol.ID); !known || v.Spec.Nice <= other.Spec.Nice {
		t.Errorf("alice's job is known: %t, nice %d, carol's %d", known, v.Spec.Nice, other.Spec.Nice)
	}
	a.finish(a.only(), 0) // bob's
	if r.settle(); a.only().Job != carol.ID.String() {
		t.Errorf("%s runs, want carol's job %s", a.only(), carol.ID)
	}
}
