package replica

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// indexed returns an entry's events with the indices of tasks instead of their
// positions. Tasks that ended alike but whose indices have gaps become an event for
// each range. REQUIRES: r.mu held.
func (r *Replica) indexed(events []fsm.Event) []fsm.Event {
	for i := range events {
		if r.hasIndices(&events[i]) {
			return r.renumbered(events, i)
		}
	}
	return events
}

// hasIndices reports whether an event is of tasks whose indices are not their
// positions. A home job is not in the state: its own broker has told its index.
func (r *Replica) hasIndices(e *fsm.Event) bool {
	return namesTasks(e) && r.state.PayloadBegins(e.Job, jobspec.PayloadIndices)
}

// namesTasks reports whether an event speaks of some tasks of a job.
func namesTasks(e *fsm.Event) bool {
	switch e.Kind {
	case fsm.EventTaskAssigned, fsm.EventTaskStarted, fsm.EventTaskStopping, fsm.EventTaskRequeued, fsm.EventTaskEnded,
		fsm.EventTaskAdopted, fsm.EventTaskWithdrawn, fsm.EventTaskDying, fsm.EventTaskResumed, fsm.EventTaskDelivering,
		fsm.EventTaskHeld, fsm.EventTaskReleased:
		return true
	case fsm.EventJobCancelling:
		return e.Count == 1
	default:
		return false
	}
}

// renumbered copies events, those from the first on with indices.
func (r *Replica) renumbered(events []fsm.Event, first int) []fsm.Event {
	out := append(make([]fsm.Event, 0, len(events)), events[:first]...)
	for _, e := range events[first:] {
		if !r.hasIndices(&e) {
			out = append(out, e)
			continue
		}
		n := r.numberingOf(e.Job)
		for from, end := e.Task, e.Task+e.Count; from < end; {
			part := e
			part.Task, part.Count = n.Run(from)
			part.Count = min(part.Count, end-from)
			from += part.Count
			out = append(out, part)
		}
	}
	return out
}

// numberingOf reads the numbering of a job of the state.
func (r *Replica) numberingOf(id command.JobID) *jobspec.Numbering {
	if r.numbered.job != id {
		view, _ := r.state.Job(id)
		r.numbered.job, r.numbered.numbers = id, jobspec.NumberingOf(view.Spec.Payload, view.Spec.Count)
	}
	return &r.numbered.numbers
}
