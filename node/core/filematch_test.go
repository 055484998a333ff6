package core

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const outputJob = `{"command":["true"],"outputs":{"paths":["out"],"max":"2Gi"}}`

// lendsFiles puts the site's machine on terms on which files travel there.
func (s *rigSite) lendsFiles(most int64) {
	s.rig.t.Helper()
	s.core.LendFiles(most)
	s.core.machines.AddHandler("local", Terms{Labels: command.Labels("site=" + s.name), Site: s.name, Collects: true})
	s.turn(CapacityEvent{"local", []executor.Machine{s.machine()}})
	s.rig.settle()
}

// TestFilesAtHomeAndAbroad: a job with outputs runs at home if files travel there, and abroad only where others' tasks
// have room for as many bytes; who starts it hears of them.
func TestFilesAtHomeAndAbroad(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 2)
	a, b := r.sites[0], r.sites[1]
	a.lendsFiles(0)
	b.lendsFiles(1 << 30)
	a.submit(outputJob, "")
	a.submit(outputJob, "")
	r.settle()
	task := a.running[a.only()]
	if task.Outputs.MaxBytes != 2<<30 || len(task.Outputs.Paths) != 1 || len(b.running) != 0 {
		t.Fatalf("a runs %+v, b %v", task, b.running)
	}
	v := r.job("a.2")
	if v.State != fsm.Queued || v.Spec.Selectors[0] != command.FilesSelector("a", 2<<30) || !v.Spec.Delivers {
		t.Fatalf("%s: %+v", v.State, v.Spec)
	}
	b.lendsFiles(16 << 30)
	if task = b.running[b.only()]; task.Owner != "a" || task.Outputs.MaxBytes != 2<<30 {
		t.Fatalf("b runs %+v", task)
	}
}

// TestFilesTakenBack: a site that lends less, or a machine whose handler takes no files any more, hands back what was
// matched with it before, and says why.
func TestFilesTakenBack(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.lendsFiles(1 << 30)
	st := &StartEffect{Task: executor.Task{
		Machine: a.machine().Name, Outputs: executor.Outputs{Paths: []string{"out"}, MaxBytes: 2 << 30},
	}}
	if why := a.core.machines.Unfit(st, true); !strings.Contains(why, "data.lend_max") {
		t.Error(why)
	}
	if why := a.core.machines.Unfit(st, false); why != "" {
		t.Error(why)
	}
	a.core.machines.AddHandler("local", Terms{Labels: "site=a", Site: "a"})
	a.turn(CapacityEvent{"local", []executor.Machine{a.machine()}})
	onlyIn := &StartEffect{Task: executor.Task{Machine: a.machine().Name}, Inputs: []jobspec.Input{{Path: "in"}}}
	for _, st := range []*StartEffect{st, onlyIn} {
		if why := a.core.machines.Unfit(st, false); !strings.Contains(why, "no files travel with tasks of machine") {
			t.Error(why)
		}
	}
}
