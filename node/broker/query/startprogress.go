package query

import (
	"fmt"
	"sync"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// maxInProgress bounds what is remembered of attempts that do not run yet.
const maxInProgress = 10_000

// StartProgress is what this site's handlers do before attempts start, such as fetching
// an image or bringing files, and what results of its own tasks wait for. It is this broker's own: the others see the
// task as assigned or running, but for its owner's broker, which may ask (farProgress).
type StartProgress struct {
	mu sync.Mutex
	by notes
	// results are of attempts that have ended.
	results notes
}

// notes are texts about attempts, maxInProgress at most.
type notes map[executor.ID]string

// set notes a text, "" = none any more.
func (n *notes) set(id executor.ID, text string) {
	switch {
	case text == "":
		delete(*n, id)
	case *n == nil:
		*n = notes{id: text}
	case len(*n) < maxInProgress:
		(*n)[id] = text
	}
}

// RecordResult notes what the result of an attempt waits for, "": it does not.
func (d *StartProgress) RecordResult(id executor.ID, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.results.set(id, why)
}

// resultWhy returns what results of a job wait for, that of its first task, "": none does.
func (d *StartProgress) resultWhy(job command.JobID) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.results) == 0 {
		return ""
	}
	name, n, first, why := job.String(), 0, executor.ID{}, ""
	for id, text := range d.results {
		if id.Job != name {
			continue
		}
		if n++; n == 1 || id.Task < first.Task {
			first, why = id, text
		}
	}
	if n > 1 {
		why = fmt.Sprintf("%d of its tasks wait so; task at place %d: %s", n, first.Task, why)
	}
	return why
}

// Record takes a handler's event.
func (d *StartProgress) Record(ev executor.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.by.set(ev.ID, ev.Doing)
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
	if len(d.by)+len(d.results) == 0 {
		return
	}
	name := job.String()
	for i := range tasks {
		t := &tasks[i]
		id := executor.ID{Job: name, Task: t.Position, Attempt: t.Attempt, Token: t.Token}
		if what := d.by[id]; what != "" && t.State == fsm.Assigned.String() {
			t.Reason = what
		}
		if what := d.results[id]; what != "" && (t.State == fsm.Assigned.String() || t.State == fsm.Running.String()) {
			t.Reason = what
		}
	}
}
