package core

import (
	"fmt"
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
	s.core.terms["local"] = Terms{labels, tasks}
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
	ask := SubmitEvent{Reqs: []node.Request{{Spec: spec, Strict: true}}, Reply: func(_ int, ans node.Answer) { got = ans }}
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
	a.core.guards["container"] = Guard{watchdog: true}
	a.core.terms["container"] = Terms{"gpu=a100,handler=container,site=a", 1}
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
	for _, at := range a.core.attempts {
		got[at.handler]++
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

// TestNodesLabels: what a handler knows of its machines stands beside its terms' labels,
// which win; what is too much, or is none, is left out. A change is another offer.
func TestNodesLabels(t *testing.T) {
	many := make([]string, command.MaxLabels)
	for i := range many {
		many[i] = fmt.Sprintf("k%02d=v", i)
	}
	for known, want := range map[string]command.Labels{
		"":                            "gpu=a100,handler=kube,site=a",
		"gpu=none,zone=z1":            "gpu=a100,handler=kube,site=a,zone=z1",
		"a.example/type=large,site=b": "a.example/type=large,gpu=a100,handler=kube,site=a",
		strings.Join(many, ","):       "gpu=a100,handler=kube,site=a",
		"no label":                    "gpu=a100,handler=kube,site=a",
	} {
		for _, m := range (Terms{Labels: "gpu=a100,handler=kube,site=a"}).onTerms("kube", []executor.Machine{{Labels: known}, {Labels: known}}) {
			if m.labels != want {
				t.Errorf("%q: got %q, want %q", known, m.labels, want)
			}
		}
	}
	r := newRig(t, command.DefaultParams(), 4)
	a := r.sites[0]
	a.core.guards["kube"] = Guard{watchdog: true}
	a.core.terms["kube"] = Terms{"handler=kube,site=a", 0}
	for i, zone := range []string{"z1", "z2"} {
		a.turn(CapacityEvent{"kube", []executor.Machine{{
			Name: "kube/n", Runs: executor.RunsImages, Resources: executor.Resources{MilliCPU: 4000, MemMiB: 1024}, Labels: "zone=" + zone,
		}}})
		a.submit(`{"image":"a","command":["true"],"selectors":["zone=z2"]}`, "")
		r.settle()
		if n := len(a.core.attempts); n != 2*i {
			t.Errorf("in %s %d tasks run", zone, n)
		}
	}
}

// TestTasksAreShared: the tasks of a handler with several machines.
func TestTasksAreShared(t *testing.T) {
	machines := []executor.Machine{{Name: "m1"}, {Name: "m2"}, {Name: "m3"}}
	for tasks, want := range map[int64][3]int64{7: {3, 2, 2}, 3: {1, 1, 1}, 2: {1, 1, 0}} {
		for i, m := range (Terms{Tasks: tasks}).onTerms("h", machines) {
			if !m.limited || m.slots != want[i] || (&machineFilter{js: &command.JobSpec{}}).at(m) != (want[i] > 0) {
				t.Errorf("%d tasks: %s gets %d, want %v", tasks, m.Name, m.slots, want)
			}
		}
	}
}
