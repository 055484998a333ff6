package core

import (
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// orphan ends an attempt that lost its supervisor after a second.
func (s *rigSite) orphan(id executor.ID) {
	began := s.rig.now
	s.turn(StartedEvent{id})
	s.ticks(1)
	s.rig.settle()
	s.rig.pass(time.Second)
	delete(s.running, id)
	s.turn(EndedEvent{id, executor.Result{
		Cause: executor.Orphaned, Started: began, Run: time.Second, Detail: "lost: its supervisor died",
	}})
	s.rig.settle()
}

// lentRig is a rig in which b runs the federation's task a.2, by an apply version.
func lentRig(t *testing.T, version uint32) (r *rig, a, b *rigSite) {
	t.Helper()
	r = newRig(t, command.DefaultParams(), 1, 1)
	a, b = r.sites[0], r.sites[1]
	r.apply(command.Command{
		ID:   command.ID{Site: "a", Incarnation: a.core.incarnation, Seq: a.core.out.Seq() + 100},
		Body: &command.Raise{Version: version},
	})
	a.submit(sleepJob, "") // keeps a busy
	a.submit(sleepJob, "")
	r.settle()
	return r, a, b
}

// used returns what a site owes for tasks at other sites, in its accounts' unit.
func (r *rig) used(owner string) (tasks uint64) {
	for _, c := range r.state.Ledger().Matrix {
		if c.Owner == owner && c.Executor != owner {
			tasks += c.Tasks
		}
	}
	return tasks
}

// TestOrphansAreChargedAndEndTheTask: a task that ends its supervisor is computed for nothing no more: each of its
// attempts is charged, and the fifth is the last.
func TestOrphansAreChargedAndEndTheTask(t *testing.T) {
	r, _, b := lentRig(t, command.OrphansVersion)
	for n := range uint64(fsm.MaxOrphans) {
		if v := r.task("a.2"); uint64(v.Orphans) != n || v.Losses+v.Failures != 0 {
			t.Fatalf("before orphan %d: %+v", n+1, v)
		}
		b.orphan(b.only())
		if got := r.used("a"); got != n+1 {
			t.Fatalf("%d attempts are charged after %d", got, n+1)
		}
	}
	v := r.task("a.2")
	if v.State != fsm.TaskFailed || !strings.Contains(v.Reason, "owner's fault") || !strings.Contains(v.Reason, "at b") {
		t.Errorf("the task: %+v", v)
	}
}

// TestOrphansBeforeTheirVersion: they are charged, too, and count as losses.
func TestOrphansBeforeTheirVersion(t *testing.T) {
	r, _, b := lentRig(t, command.FirstVersion)
	b.orphan(b.only())
	if v := r.task("a.2"); v.Losses != 1 || v.Orphans != 0 || r.used("a") != 1 {
		t.Errorf("%+v, %d charged", v, r.used("a"))
	}
}

// TestOrphansAtHome: the same holds for a site's own jobs on its own machines.
func TestOrphansAtHome(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	a.submit(sleepJob, "")
	for n := range uint32(fsm.MaxOrphans) {
		if task := a.core.home.Find(1).Tasks[0]; task.Orphans != n || task.Losses+task.Failures != 0 {
			t.Fatalf("before orphan %d: %+v", n+1, task)
		}
		a.orphan(a.only())
	}
	a.boot()
	task := a.core.home.Find(1).Tasks[0]
	if task.State != fsm.TaskFailed || !strings.Contains(task.Reason, "owner's fault") || len(a.history) != fsm.MaxOrphans {
		t.Errorf("after %d starts: %+v", len(a.history), task)
	}
	a.register(nil, nil)
	a.ticks(usageTicks)
	r.settle()
	for _, c := range r.state.Ledger().Matrix {
		if c.Tasks != fsm.MaxOrphans {
			t.Errorf("%d of its runs stand in the ledger, want %d", c.Tasks, fsm.MaxOrphans)
		}
	}
	if len(r.state.Ledger().Matrix) != 1 {
		t.Errorf("%+v", r.state.Ledger().Matrix)
	}
}
