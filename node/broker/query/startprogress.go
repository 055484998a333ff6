package query

import (
	"sync"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// maxInProgress bounds what is remembered of attempts that do not run yet.
const maxInProgress = 10_000

// StartProgress is what this site's handlers do before attempts start, such as fetching
// an image or bringing files. It is this broker's own: the others see the task as assigned, but for its owner's broker,
// which may ask (farProgress).
type StartProgress struct {
	mu sync.Mutex
	by map[executor.ID]string
}

// Record takes a handler's event.
func (d *StartProgress) Record(ev executor.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case ev.Doing == "":
		delete(d.by, ev.ID)
	case d.by == nil:
		d.by = map[executor.ID]string{ev.ID: ev.Doing}
	case len(d.by) < maxInProgress:
		d.by[ev.ID] = ev.Doing
	}
}

// of returns what is done for an attempt, "" = nothing is known.
func (d *StartProgress) of(id executor.ID) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.by[id]
}

// explain gives a job's assigned tasks their handler's word as the reason.
func (d *StartProgress) explain(job command.JobID, tasks []node.Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.by) == 0 {
		return
	}
	name := job.String()
	for i := range tasks {
		t := &tasks[i]
		if what := d.by[executor.ID{Job: name, Task: t.Position, Attempt: t.Attempt, Token: t.Token}]; what != "" &&
			t.State == fsm.Assigned.String() {
			t.Reason = what
		}
	}
}
