package core

import (
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const imageJob = `{"image":"alpine","command":["true"]}`

// equip gives the site's machine another kind of tasks, as a handler does whose
// container engine comes or goes.
func (s *rigSite) equip(runs executor.Runs) {
	s.rig.t.Helper()
	s.runs = runs
	s.turn(CapacityEvent{"local", []executor.Machine{s.machine()}})
}

// A job with an image is no home run where only commands run, and goes to
// the site that has containers. Nobody declines anything.
func TestImageJobGoesWhereImagesRun(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2, 2)
	a, b := r.sites[0], r.sites[1]
	a.submit(imageJob, "")
	r.settle()
	if v := r.job("a.1"); v.State != fsm.Queued || v.Reason != "no present site runs container images" {
		t.Fatalf("%s: %q", v.State, v.Reason)
	}
	b.equip(executor.RunsImages)
	r.settle()
	if id := b.only(); b.running[id].Image != "alpine" || id.Attempt != 1 || len(a.history) != 0 {
		t.Fatalf("%s runs %q at b; a started %v", id, b.running[id].Image, a.history)
	}
}

// Event 1 asks the machine: images start at home where they run, commands do not
// start on what runs images only.
func TestHomeStartsByKind(t *testing.T) {
	for _, c := range []struct {
		runs           executor.Runs
		command, image bool
	}{
		{executor.RunsCommands, true, false},
		{executor.RunsImages, false, true},
		{executor.RunsBoth, true, true},
	} {
		r := newRig(t, command.DefaultParams(), 2)
		a := r.sites[0]
		a.equip(c.runs)
		r.settle()
		for spec, want := range map[string]bool{sleepJob: c.command, imageJob: c.image} {
			i := a.submit(spec, "")
			r.settle()
			if home := a.answers[i].Durability == node.DurableSite; home != want {
				t.Errorf("%d: %s at home: %v, want %v: %+v", c.runs, spec, home, want, a.answers[i])
			}
		}
	}
}

// A site alone keeps only what it could run some day; the rest waits for the
// quorum.
func TestAloneByKind(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "") // keeps a busy
	r.settle()
	a.lease(time.Millisecond)
	r.now = r.now.Add(time.Hour)
	if i := a.submit(sleepJob, ""); a.answers[i].Reason != AloneReason {
		t.Errorf("a command: %+v", a.answers[i])
	}
	if i := a.submit(imageJob, ""); a.answers[i].Reason == AloneReason {
		t.Errorf("an image waits for a machine of this site: %+v", a.answers[i])
	}
}

// The kind is looked at again at the start: the engine may have gone since.
func TestMachineThatNoLongerRunsImagesDeclines(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	b.equip(executor.RunsBoth)
	r.settle()
	a.submit(imageJob, "")
	r.apply(a.pending...) // b is assigned the task and has not looked yet
	a.pending = nil
	b.equip(executor.RunsCommands)
	r.settle()
	if len(b.history) != 0 {
		t.Fatalf("b started %v", b.history)
	}
	if v := r.job("a.1"); v.State != fsm.Queued || !strings.Contains(v.Reason, "runs container images") {
		t.Errorf("%s: %q", v.State, v.Reason)
	}
}

func TestStrictRefusesImagesNobodyRuns(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	spec, err := jobspec.ParseSpec([]byte(imageJob))
	if err != nil {
		t.Fatal(err)
	}
	var got node.Answer
	ask := SubmitEvent{
		Reqs:  []node.Request{{Spec: spec, Strict: true}},
		Reply: func(_ int, ans node.Answer) { got = ans },
	}
	a.turn(ask)
	if want := node.ErrUnfit.Error() + ": no present site runs container images"; got.Err == nil || got.Err.Error() != want {
		t.Fatalf("got %v, want %q", got.Err, want)
	}
	a.equip(executor.RunsBoth)
	r.settle()
	if a.turn(ask); got.Err != nil {
		t.Error(got.Err)
	}
}

// A site with two handlers: each task goes to the one that runs its kind, at home
// as from the queue, and one that neither can run hears why.
func TestTwoHandlers(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	for _, s := range []*rigSite{a, b} {
		s.core.bounds.SetGuard("container", Guard{Watchdog: true})
		s.turn(CapacityEvent{"container", []executor.Machine{{
			Name: "container", Runs: executor.RunsImages, Resources: executor.Resources{MilliCPU: 1000, MemMiB: 1024},
		}}})
	}
	r.settle()
	for range 2 { // at home, then at b
		a.submit(imageJob, "")
		a.submit(sleepJob, "")
		r.settle()
	}
	for _, s := range []*rigSite{a, b} {
		got := map[string]string{}
		for id, at := range s.core.attempts.All() {
			got[at.Handler] = s.running[id].Image
		}
		if len(got) != 2 || got["container"] != "alpine" || got["local"] != "" {
			t.Errorf("%s: images by handler %v, want one task each", s.core.site, got)
		}
	}
	a.submit(`{"image":"alpine","command":["true"],"resources":{"cpu":2}}`, "")
	r.settle()
	if v := r.job("a.5"); v.State != fsm.Queued || v.Reason != "no present site runs container images on a machine with 2 cores" {
		t.Errorf("%s: %q", v.State, v.Reason)
	}
}
