package core

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

const networkJob = `{"command":["true"],"network":true}`

// gives puts the site's machine on terms on which others' tasks have this network.
func (s *rigSite) gives(n executor.Network) {
	s.rig.t.Helper()
	s.core.machines.AddHandler("local", Terms{Labels: command.Labels("site=" + s.name), Site: s.name})
	m := s.machine()
	m.Network = n
	s.turn(CapacityEvent{"local", []executor.Machine{m}})
	s.rig.settle()
}

// TestNetworkAtHomeAndAbroad: a job that needs a network runs at home whatever its site gives others, and abroad only
// where others' tasks have one.
func TestNetworkAtHomeAndAbroad(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 2)
	a, b := r.sites[0], r.sites[1]
	a.gives(executor.NetworkNone)
	b.gives(executor.NetworkNone)
	a.submit(networkJob, "")
	a.submit(networkJob, "")
	r.settle()
	if task := a.running[a.only()]; !task.Network || len(b.running) != 0 {
		t.Fatalf("a runs %+v, b %v", task, b.running)
	}
	if v := r.job("a.2"); v.State != fsm.Queued || v.Spec.Selectors[0] != command.NetworkSelector("a") {
		t.Fatalf("%s: %q", v.State, v.Reason)
	}
	b.gives(executor.NetworkOutbound)
	if task := b.running[b.only()]; !task.Network || task.Owner != "a" {
		t.Fatalf("b runs %+v", task)
	}
}

// TestNetworkTakenBack: a machine that gives none any more, when a task that was matched with it before arrives,
// hands it back and says why.
func TestNetworkTakenBack(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.gives(executor.NetworkNone)
	task := &StartEffect{Task: executor.Task{Machine: a.machine().Name, Network: true}}
	if why := a.core.machines.Unfit(task, true); !strings.Contains(why, "gives other sites' tasks no network (sandbox.network)") {
		t.Error(why)
	}
	if why := a.core.machines.Unfit(task, false); why != "" {
		t.Error(why)
	}
	a.gives(executor.NetworkHost)
	if why := a.core.machines.Unfit(task, true); why != "" {
		t.Error(why)
	}
}
