package core

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// An adopted task shows when it began: its handler knows, though nobody was told.
func TestAdoptedTaskHasItsStart(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	r.settle() // the second one runs at b, which has told nobody yet
	began := r.now
	r.now = r.now.Add(time.Minute)
	a.boot()
	b.boot()
	j, _ := a.core.own.Job(1)
	tasks, _, _ := a.core.own.FindTasks(1, node.TaskQuery{Limit: 1})
	if j.State != "running" || !j.StartedAt.Equal(began) || tasks[0].State != "running" || !tasks[0].StartedAt.Equal(began) {
		t.Errorf("at home: %s since %s, its task %s since %s; want %s", j.State, j.StartedAt, tasks[0].State, tasks[0].StartedAt, began)
	}
	b.ticks(1)
	r.settle()
	if v := r.job("a.2"); v.State != fsm.Running || v.Counts[fsm.Running] != 1 {
		t.Errorf("at b: %s %v", v.State, v.Counts)
	}
}
