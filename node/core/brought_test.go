package core

import (
	"errors"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// importing submits a job whose inputs come later.
func (s *rigSite) importing(json string) node.Answer {
	s.rig.t.Helper()
	spec, err := jobspec.ParseSpec([]byte(json))
	if err != nil {
		s.rig.t.Fatal(err)
	}
	var got node.Answer
	req := node.Request{Spec: spec, Operator: true, Importing: true}
	s.turn(SubmitEvent{Reqs: []node.Request{req}, Reply: func(_ int, a node.Answer) { got = a }})
	s.rig.settle()
	if got.Err != nil {
		s.rig.t.Fatal(got.Err)
	}
	return got
}

// brought says that a job's inputs are here, or why they will not be.
func (s *rigSite) brought(num uint64, json, why string) error {
	s.rig.t.Helper()
	spec, err := jobspec.ParseSpec([]byte(json))
	if err != nil {
		s.rig.t.Fatal(err)
	}
	err = errors.New("unanswered")
	s.turn(BroughtEvent{Num: num, Spec: spec, Why: why, Reply: func(e error) { err = e }})
	s.rig.settle()
	return err
}

// TestHeldForInputs: a job has its id at once, waits for its inputs over a restart, and runs once with the spec that
// names them.
func TestHeldForInputs(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	job := a.importing(sleepJob)
	if job.State != "queued" || job.Reason != "waits for its inputs to be brought here" || job.Durability != node.DurableSite {
		t.Errorf("%+v", job)
	}
	a.boot()
	r.settle()
	a.wantStates("held", job)
	if got := a.core.AwaitInputs(); len(got) != 1 || got[0] != job.ID.Num || len(a.live()) > 0 {
		t.Fatalf("%v, %v", got, a.live())
	}
	if n := a.core.Figures().AwaitInputs; n != 1 {
		t.Errorf("counted are %d", n)
	}
	with := strings.TrimSuffix(sleepJob, "}") + `,"env":{"INPUTS":"here"}}` // machines of the rig take no files
	if err := a.brought(job.ID.Num, with, ""); err != nil {
		t.Fatal(err)
	}
	a.wantStates("running", job)
	js, _ := a.core.Own().Spec(job.ID.Num)
	if spec, err := jobspec.SpecOf(js, a.core.sealer); err != nil || spec.Env["INPUTS"] != "here" {
		t.Errorf("%+v %v", spec, err)
	}
	if err := a.brought(job.ID.Num, with, ""); !errors.Is(err, node.ErrEnded) {
		t.Errorf("again: %v", err)
	}
	if n, counted := len(a.core.AwaitInputs()), a.core.Figures().AwaitInputs; n+counted != 0 {
		t.Errorf("%d await inputs, counted are %d", n, counted)
	}
}

// TestBroughtBeforeItMayRun: inputs that came while the job waits for another one, or before the broker is registered,
// are there after a restart.
func TestBroughtBeforeItMayRun(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	first := a.add(sleepJob)
	job := a.importing(afterJob(first.ID.String()))
	if want := "waits for its inputs to be brought here, and waits for " + first.ID.String() + " to succeed"; job.Reason != want {
		t.Errorf("%q, want %q", job.Reason, want)
	}
	if err := a.brought(job.ID.Num, afterJob(first.ID.String()), ""); err != nil {
		t.Fatal(err)
	}
	a.boot()
	r.settle()
	a.wantStates("running held", first, job)
	a.endOnly(0)
	a.wantStates("succeeded running", first, job)
	a.endOnly(0)

	job = a.importing(sleepJob)
	a.reopen()
	if err := a.brought(job.ID.Num, sleepJob, ""); err != nil {
		t.Fatal(err)
	}
	a.wantStates("held", job)
	a.boot()
	r.settle()
	a.wantStates("running", job)
}

// TestInputsThatDoNotCome end the job with the reason, and what waits for it; so does its user.
func TestInputsThatDoNotCome(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	job := a.importing(sleepJob)
	next := a.add(afterJob(job.ID.String()))
	if err := a.brought(job.ID.Num, sleepJob, "the disk is full"); err != nil {
		t.Fatal(err)
	}
	a.wantStates("cancelled cancelled", job, next)
	if _, why := a.sees(job.ID); why != "the disk is full" {
		t.Errorf("%q", why)
	}
	unbrought := func(want bool) {
		t.Helper()
		if v, ok := a.core.Own().Job(job.ID.Num); !ok || v.Unbrought != want {
			t.Errorf("%t: %+v", ok, v)
		}
	}
	unbrought(true)
	if n := a.core.Figures().AwaitInputs; n != 0 {
		t.Errorf("counted are %d", n)
	}
	a.boot()
	r.settle()
	unbrought(true)
	job = a.importing(sleepJob)
	a.turn(CancelEvent{Num: job.ID.Num, Reply: func(err error) {
		if err != nil {
			t.Error(err)
		}
	}})
	a.wantStates("cancelled", job)
	if err := a.brought(job.ID.Num, sleepJob, ""); !errors.Is(err, node.ErrEnded) {
		t.Error(err)
	}
	if err := a.brought(job.ID.Num, sleepJob, "the disk is full"); !errors.Is(err, node.ErrEnded) {
		t.Error(err)
	}
	a.boot()
	r.settle()
	a.wantStates("cancelled", job)
	unbrought(false)
}

// TestInputsKeepThePriority: what its user changed while the inputs were on their way stays. It became again what the
// job was submitted with.
func TestInputsKeepThePriority(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2)
	a := r.sites[0]
	job := a.importing(sleepJob)
	a.setPriority(7, job.ID)
	if err := a.brought(job.ID.Num, sleepJob, ""); err != nil {
		t.Fatal(err)
	}
	a.wantStates("running", job)
	if js, _ := a.core.Own().Spec(job.ID.Num); js.Priority != 7 {
		t.Errorf("priority %d", js.Priority)
	}
}

// TestOtherSpecIsNotBrought: inputs are all that may change.
func TestOtherSpecIsNotBrought(t *testing.T) {
	a := newRig(t, command.DefaultParams(), 2).sites[0]
	job := a.importing(sleepJob)
	for _, other := range []string{`{"command":["x"],"count":2}`, `{"command":["x"],"resources":{"cpu":2}}`} {
		if err := a.brought(job.ID.Num, other, ""); !errors.Is(err, errOtherSpec) {
			t.Errorf("%s: %v", other, err)
		}
	}
	a.wantStates("held", job)
}
