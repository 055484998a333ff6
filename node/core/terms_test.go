package core

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const gpuJob = `{"command":["true"],"selectors":["gpu=a100"]}`

// on puts the site's machine on other terms, as a restart with another
// configuration does.
func (s *rigSite) on(labels command.Labels, tasks int64) {
	s.rig.t.Helper()
	s.core.machines.AddHandler("local", Terms{Labels: labels, Tasks: tasks})
	s.turn(CapacityEvent{"local", []executor.Machine{s.machine()}})
	s.rig.settle()
}

func (r *rig) machine(site string) fsm.MachineView {
	r.t.Helper()
	v, _ := r.state.Site(site)
	if len(v.Machines) != 1 {
		r.t.Fatalf("%s offers %+v", site, v.Machines)
	}
	return v.Machines[0]
}

// Selectors hold at home as from the queue: a job goes past its own free machine to
// the one that has the label, and its reason says what there is.
func TestSelectorsHoldAtHome(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 2, 2)
	a, b := r.sites[0], r.sites[1]
	a.on("gpu=v100,site=a", 0)
	a.submit(gpuJob, "")
	r.settle()
	if v := r.job("a.1"); v.State != fsm.Queued || v.Reason != "no machine of the federation has gpu=a100; nearest: 1 machine has gpu=v100" {
		t.Fatalf("%s: %q", v.State, v.Reason)
	}
	b.on("gpu=a100,site=b", 0)
	if id := b.only(); id.Job != "a.1" || len(a.running) != 0 {
		t.Fatalf("b runs %s, a %v", id, a.running)
	}
	a.submit(`{"command":["true"],"selectors":["gpu!=a100","site"]}`, "")
	r.settle()
	if id := a.only(); id.Job != "a.2" {
		t.Fatalf("a runs %s", id)
	}
	// What runs goes on when its machine's labels change; what waits is looked at again.
	a.submit(gpuJob, "")
	a.submit(gpuJob, "")
	r.settle()
	b.on("site=b", 0)
	a.on("gpu=a100", 0)
	if len(a.running) != 2 || len(b.running) != 2 {
		t.Fatalf("%d run at a, %d at b", len(a.running), len(b.running))
	}
}

// Strict refuses what no machine has the labels for.
func TestStrictRefusesLabelsNobodyHas(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	spec, err := jobspec.ParseSpec([]byte(gpuJob))
	if err != nil {
		t.Fatal(err)
	}
	var got node.Answer
	ask := SubmitEvent{
		Reqs:  []node.Request{{Spec: spec, Strict: true}},
		Reply: func(_ int, ans node.Answer) { got = ans },
	}
	a.turn(ask)
	if want := node.ErrUnfit.Error() + ": no machine of the federation has gpu=a100; none has a label gpu"; got.Err == nil || got.Err.Error() != want {
		t.Fatalf("got %v, want %q", got.Err, want)
	}
	a.on("gpu=a100", 0)
	if a.turn(ask); got.Err != nil {
		t.Error(got.Err)
	}
}

// A handler's tasks at once are counted at home and for the federation together,
// whatever room its machine has.
func TestTasksAtOnce(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 8, 1)
	a, b := r.sites[0], r.sites[1]
	a.on("", 3)
	if i := a.submit(`{"command":["true"],"count":4}`, ""); a.answers[i].Durability == node.DurableSite {
		t.Fatalf("four tasks at home: %+v", a.answers[i])
	}
	r.settle()
	if len(a.running) != 3 || len(b.running) != 1 {
		t.Fatalf("%d at a, %d at b", len(a.running), len(b.running))
	}
	for id := range a.running {
		a.finish(id, 0)
	}
	r.settle()
	for range 2 { // two at home leave one slot
		if i := a.submit(sleepJob, ""); a.answers[i].Durability != node.DurableSite {
			t.Fatalf("%+v", a.answers[i])
		}
	}
	r.settle()
	if m := r.machine("a"); m.Slots != 1 || m.Free.MilliCPU != 6000 {
		t.Fatalf("%+v", m)
	}
	b.submit(sleepJob, "")
	r.settle()
	if len(a.running) != 3 {
		t.Fatalf("%d at a", len(a.running))
	}
	if v, _ := r.state.Site("a"); v.Machines[0].Free != (command.Resources{}) {
		t.Fatalf("%+v", v.Machines)
	}
	// Home runs that take all slots leave nothing to offer; jobs wait for one to end.
	for id := range a.running {
		if strings.HasPrefix(id.Job, "b") {
			a.finish(id, 0)
		}
	}
	a.submit(sleepJob, "")
	r.settle()
	if m := r.machine("a"); len(a.running) != 3 || m.Exposed != (command.Resources{}) {
		t.Fatalf("%d at a, %+v", len(a.running), m)
	}
}

// Two handlers of one site, with terms of their own: a job goes to the one whose
// labels it selects, and neither runs more than it may.
func TestTwoHandlersOnTheirTerms(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 4)
	a := r.sites[0]
	a.core.bounds.SetGuard("container", Guard{Watchdog: true})
	a.core.machines.AddHandler("container", Terms{Labels: "gpu=a100,handler=container,site=a", Tasks: 1})
	a.turn(CapacityEvent{"container", []executor.Machine{{
		Name: "container", Runs: executor.RunsBoth, Resources: executor.Resources{MilliCPU: 4000, MemMiB: 1024},
	}}})
	a.on("handler=local,site=a", 2)
	for range 3 {
		a.submit(`{"command":["true"],"selectors":["handler in (container,kube)"]}`, "")
	}
	for range 3 {
		a.submit(`{"command":["true"],"selectors":["!gpu"]}`, "")
	}
	r.settle()
	got := map[string]int{}
	for _, at := range a.core.attempts.All() {
		got[at.Handler]++
	}
	if got["container"] != 1 || got["local"] != 2 || len(got) != 2 {
		t.Fatalf("tasks by handler %v", got)
	}
	a.submit(`{"command":["true"],"selectors":["handler=local","gpu"]}`, "")
	r.settle()
	want := "no machine of the federation has all of gpu, handler=local; nearest: a/a-local lacks gpu (it has no label gpu)"
	if v := r.job("a.7"); v.Reason != want {
		t.Errorf("%q, want %q", v.Reason, want)
	}
}

// TestNodesLabels: what a handler knows of its machines stands beside its terms' labels.
// A change is another offer.
func TestNodesLabels(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 4)
	a := r.sites[0]
	a.core.bounds.SetGuard("kube", Guard{Watchdog: true})
	a.core.machines.AddHandler("kube", Terms{Labels: "handler=kube,site=a"})
	for i, zone := range []string{"z1", "z2"} {
		a.turn(CapacityEvent{"kube", []executor.Machine{{
			Name: "kube/n", Runs: executor.RunsImages, Resources: executor.Resources{MilliCPU: 4000, MemMiB: 1024},
			Labels: "zone=" + zone,
		}}})
		a.submit(`{"image":"a","command":["true"],"selectors":["zone=z2"]}`, "")
		r.settle()
		if n := a.core.attempts.Len(); n != 2*i {
			t.Errorf("in %s %d tasks run", zone, n)
		}
	}
}
