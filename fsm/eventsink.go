package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Observe makes Apply append the events of each entry to *sink, in order, until the next call of Observe;
// nil stops it. The caller owns the slice and empties it. A state that Restore returns is not observed.
func (s *attemptTable) Observe(sink *[]Event) { s.events = sink }

// Each function below is called where its event happens, and is small enough to be inlined: while nobody
// observes, it costs one comparison.

func (s *attemptTable) tellFederation(kind EventKind) {
	if s.events != nil {
		s.emit(Event{Kind: kind})
	}
}

func (s *attemptTable) tellSite(kind EventKind, x *site) {
	if s.events != nil {
		s.emit(Event{Kind: kind, Site: x.name})
	}
}

// tellAway emits how a site left.
func (s *attemptTable) tellAway(x *site) {
	if x.state == Left {
		s.tellSite(EventSiteLeft, x)
		return
	}
	s.tellSite(EventSiteLost, x)
}

func (s *jobTable) tellJob(kind EventKind, j *job) {
	if s.events != nil {
		s.emitJob(kind, j)
	}
}

func (s *jobTable) tellAttempt(kind EventKind, a *attempt) {
	if s.events != nil {
		s.emitAttempt(kind, a)
	}
}

// tellRecord emits an event of a task whose attempt is gone, or that never had one.
func (s *jobTable) tellRecord(kind EventKind, j *job, r *record, e Ending) {
	if s.events != nil {
		s.emitRecord(kind, j, r, e)
	}
}

// tellHeld emits that tasks [from, from+n) that never ran are held.
func (s *attemptTable) tellHeld(j *job, from, n uint32) { s.tellGate(EventTaskHeld, j, from, n, 0) }

// tellHeldTask emits that a task that waited after an attempt is held.
func (s *attemptTable) tellHeldTask(j *job, b *backTask) {
	s.tellGate(EventTaskHeld, j, b.task, 1, b.attempt)
}

// tellReleased emits that n tasks whose last attempt was this one, 0 = none, wait from now on.
func (s *attemptTable) tellReleased(j *job, from, n, attempt uint32) {
	s.tellGate(EventTaskReleased, j, from, n, attempt)
}

func (s *attemptTable) tellGate(kind EventKind, j *job, from, n, attempt uint32) {
	if s.events != nil {
		s.emit(Event{
			Kind: kind, Job: s.idOf(j), Task: from, Count: n, Attempt: attempt, Need: j.class.Need,
			QueuedMs: j.queuedMs, AssignedMs: -1, StartedMs: -1,
		})
	}
}

// tellEnded emits the end of waiting tasks [from, to) that ended alike.
func (s *attemptTable) tellEnded(j *job, from, to uint32, state TaskState, why string) {
	if s.events != nil {
		s.emit(Event{
			Kind: EventTaskEnded, End: EndingOf(state), Job: s.idOf(j), Task: from, Count: to - from,
			Need: j.class.Need, QueuedMs: j.queuedMs, AssignedMs: -1, StartedMs: -1, Reason: why,
		})
	}
}

func (s *attemptTable) tellOffer(x *site, before command.Resources) {
	if s.events != nil && x.exposed != before {
		s.emit(Event{Kind: EventSiteOffered, Site: x.name, Need: x.exposed})
	}
}

func (s *attemptTable) tellHome(x *site, r *command.UsageRow, queued, start, end int64) {
	if s.events != nil {
		s.emit(Event{
			Kind: EventHomeRan, Job: command.JobID{Site: x.name, Num: r.Job}, Task: r.Task, Count: 1,
			Site: x.name, Need: r.Need, QueuedMs: queued, AssignedMs: -1, StartedMs: start, RunMs: end - start,
		})
	}
}

// tellCancel emits that the owner wants a job (task < 0) or one task to end.
func (s *attemptTable) tellCancel(j *job, task int64, why string) {
	if s.events == nil {
		return
	}
	e := Event{Kind: EventJobCancelling, Job: s.idOf(j), Count: j.count, Reason: why}
	if task >= 0 {
		e.Task, e.Count = uint32(task), 1
	}
	s.emit(e)
}

// tellPriority emits that a job is to have another priority.
func (s *attemptTable) tellPriority(j *job, was, is int32) {
	if s.events != nil {
		s.emit(Event{
			Kind: EventJobPrioritized, Job: s.idOf(j), Count: j.count, Need: j.class.Need, QueuedMs: j.queuedMs,
			AssignedMs: -1, StartedMs: j.startedMs, Reason: PriorityWords(was, is),
		})
	}
}

// PriorityWords says how a job's priority has changed.
func PriorityWords(was, is int32) string { return fmt.Sprintf("priority %d, was %d", is, was) }

func (s *fleet) idOf(j *job) command.JobID {
	return command.JobID{Site: s.sites[j.owner].name, Num: j.num}
}

func (s *attemptTable) emit(e Event) {
	e.Index, e.Time = s.index, s.time
	*s.events = append(*s.events, e)
}

func (s *jobTable) emitJob(kind EventKind, j *job) {
	e := Event{
		Kind: kind, Job: s.idOf(j), Count: j.count, Need: j.class.Need,
		QueuedMs: j.queuedMs, StartedMs: j.startedMs,
	}
	if kind == EventJobEnded {
		c := s.counts(j)
		e.End = EndingOf(c.JobState())
		if e.End != EndSucceeded {
			e.Reason = j.tasks.why
		}
	}
	s.emit(e)
}

func (s *jobTable) emitAttempt(kind EventKind, a *attempt) {
	j := s.jobs.Get(a.seq)
	s.emit(Event{
		Kind: kind, Job: s.idOf(j), Task: a.task, Count: 1, Attempt: a.attempt, Token: a.token,
		Site: s.sites[a.site].name, Machine: a.machine.name, Need: j.class.Need,
		QueuedMs: a.queuedMs, AssignedMs: a.assignedMs, StartedMs: a.startedMs, Reason: a.why,
	})
}

func (s *jobTable) emitRecord(kind EventKind, j *job, r *record, end Ending) {
	e := Event{
		Kind: kind, End: end, Job: s.idOf(j), Task: r.task, Count: 1, Attempt: r.attempt, Token: r.token,
		Machine: r.machine, ExitCode: r.exit, Signal: r.signal, Need: j.class.Need,
		QueuedMs: r.queuedMs, AssignedMs: r.assignedMs, StartedMs: r.startedMs, RunMs: s.charged, BeyondMs: s.beyond,
		Delivered: s.delivered, Reason: r.detail,
	}
	if f := r.facts; f != nil {
		e.Output, e.Measured = f.output, f.measured
	}
	if r.site >= 0 {
		e.Site = s.sites[r.site].name
	}
	s.emit(e)
}
