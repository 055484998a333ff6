package fsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// line prints an event for a test.
func (e *Event) line() string {
	out := []string{fmt.Sprintf("%d %s", e.Index, e.Kind)}
	add := func(ok bool, format string, args ...any) {
		if ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(e.Job.Num > 0, "%s", e.Job)
	add(e.Count > 0, "task %d+%d", e.Task, e.Count)
	add(e.Attempt > 0, "attempt %d of %d", e.Attempt, e.Token)
	add(e.Site != "", "at %s", e.Site)
	add(e.End != NoEnding, "%s", e.End)
	add(e.ExitCode != 0, "exit %d", e.ExitCode)
	add(e.RunMs > 0, "ran %d", e.RunMs)
	add(e.Delivered, "delivered")
	add(!e.Output.IsZero(), "output %x of %d bytes", e.Output.Manifest[:2], e.Output.Bytes)
	add(!e.Measured.IsZero(), "measured by %s", e.Measured.Source)
	add(e.Reason != "", "(%s)", e.Reason)
	return strings.Join(out, " ")
}

func lines(events []Event) string {
	var out strings.Builder
	for i := range events {
		out.WriteString(events[i].line() + "\n")
	}
	return out.String()
}

func TestEventsTellAJobsWay(t *testing.T) {
	w := newWorld(t, params())
	var events []Event
	w.s.Observe(&events)
	w.register("a")
	w.register("b")
	w.must("b", w.offering("b", 1))
	j := w.job("a", 3)
	j.MaxAttempts = 2
	w.submit("a", j)
	w.at(10)
	ref := w.s.Assignments("b")[0]
	w.must("b", &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: ref.AttemptRef, DelayMs: 1}}})
	w.at(50)
	w.must("b", &command.Complete{Attempts: []command.Ended{{
		AttemptRef: ref.AttemptRef, Outcome: command.Failed, ExitCode: 3, DelayMs: 1, RunMs: 20,
	}}})
	ref = w.s.Assignments("b")[0]
	w.must("b", &command.Decline{Attempts: []command.AttemptRef{ref.AttemptRef}, Reason: "no disk"})
	w.must("b", w.offering("b", 1))
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	w.must("a", &command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: w.term})
	const want = `2 site.registered at a
3 site.registered at b
4 site.offered at b
5 job.submitted a.1 task 0+3
5 task.assigned a.1 task 0+1 attempt 1 of 5 at b
6 task.started a.1 task 0+1 attempt 1 of 5 at b
7 task.requeued a.1 task 0+1 attempt 1 of 5 at b failed exit 3 ran 20
7 task.assigned a.1 task 0+1 attempt 2 of 7 at b
8 task.requeued a.1 task 0+1 attempt 2 of 7 at b declined (no disk)
9 task.assigned a.1 task 0+1 attempt 3 of 9 at b
10 job.cancelling a.1 task 0+3 (cancelled at a)
10 task.stopping a.1 task 0+1 attempt 3 of 9 at b (cancelled at a)
10 task.ended a.1 task 1+2 cancelled (cancelled at a)
11 site.lost at b
11 site.offered at b
11 task.ended a.1 task 0+1 attempt 3 of 9 at b cancelled (cancelled at a)
11 job.ended a.1 task 0+3 cancelled (cancelled at a)
`
	if got := lines(events); got != want {
		t.Errorf("events are\n%s\nwant\n%s", got, want)
	}
	w.s.Observe(nil)
	n := len(events)
	w.register("b")
	if len(events) != n {
		t.Error("an event came after Observe(nil)")
	}
}

// TestEventsRebuildTheState sends random commands and keeps every task's state by the events alone: it must be
// what the state shows, after every entry. A replica that goes through snapshots and gets repeats emits the same
// events.
func TestEventsRebuildTheState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, realBounds())
		f := &follower{tasks: map[command.JobID][]followed{}, away: map[string]bool{}}
		m.w.s.Observe(&f.events)
		m.twin.Observe(&f.twin)
		rt.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { f.check(t, m.w.s) },
			"restore": func(t *rapid.T) {
				m.restore(t)
				m.twin.Observe(&f.twin)
			},
			"submit": m.submit, "submit2": m.submit, "offer": m.offer, "offer2": m.offer, "started": m.started, "bound": m.bound,
			"complete": m.complete, "finish": m.complete, "deliver": m.deliver, "decline": m.decline, "cancel": m.cancel, "usage": m.usage, "lost": m.lost,
			"register": m.register, "forget": m.forget, "leave": m.leave, "suspect": m.suspect, "params": m.params, "tick": m.tick,
			"term": m.newTerm,
		})
	})
}

// followed is what events say of a task: its state, and the state to which an adoption returns it.
type followed struct{ now, adopted TaskState }

// follower rebuilds tasks from events.
type follower struct {
	events, twin []Event
	tasks        map[command.JobID][]followed
	away         map[string]bool
}

func (f *follower) check(t *rapid.T, s *State) {
	if !slices.Equal(f.events, f.twin) {
		t.Fatalf("replicas tell\n%s\nand\n%s", lines(f.events), lines(f.twin))
	}
	for i := range f.events {
		f.follow(t, &f.events[i])
	}
	f.events, f.twin = nil, nil
	for seq, j := range s.jobs.All() {
		id := s.idOf(j)
		for i, have := range f.tasks[id] {
			if (have.now == Queued || have.now == Held) && f.away[id.Site] {
				have.now = Withdrawn
			}
			if want := s.viewTask(seq, j, uint32(i)).State; have.now != want {
				t.Fatalf("entry %d: %s/%d is %v by its events, %v in the state", s.index, id, i, have.now, want)
			}
		}
		if j.over() != (f.tasks[id] == nil) {
			t.Fatalf("entry %d: %s: over %v, its events differ", s.index, id, j.over())
		}
	}
}

func (f *follower) follow(t *rapid.T, e *Event) {
	tasks := f.tasks[e.Job]
	if e.Count > 0 && e.Kind != EventJobSubmitted && e.Kind != EventHomeRan && int(e.Task+e.Count) > len(tasks) {
		t.Fatalf("event of no task: %s", e.line())
	}
	switch e.Kind {
	case EventJobSubmitted:
		f.tasks[e.Job] = make([]followed, e.Count)
	case EventJobEnded:
		for i := range tasks {
			if !tasks[i].now.Ended() {
				t.Fatalf("%s ended, its task %d did not", e.Job, i)
			}
		}
		delete(f.tasks, e.Job)
	case EventTaskEnded:
		for i := e.Task; i < e.Task+e.Count; i++ {
			tasks[i].now = TaskSucceeded + TaskState(e.End-EndSucceeded)
			if e.End >= EndTimedOut {
				tasks[i].now = map[Ending]TaskState{EndCancelled: TaskCancelled, EndLost: TaskLost}[e.End]
			}
		}
	case EventSiteRegistered, EventSiteReturned:
		f.away[e.Site] = false
	case EventSiteLost, EventSiteLeft:
		f.away[e.Site] = true
	case EventTaskAdopted, EventTaskAssigned, EventTaskStarted, EventTaskStopping, EventTaskRequeued,
		EventTaskWithdrawn, EventTaskDying, EventTaskDelivering:
		tasks[e.Task].step(e.Kind)
	case EventTaskHeld, EventTaskReleased:
		for i := e.Task; i < e.Task+e.Count; i++ {
			tasks[i].step(e.Kind)
		}
	case EventTaskResumed:
		tasks[e.Task].now = Assigned
		if e.StartedMs >= 0 {
			tasks[e.Task].now = Running
		}
	default:
	}
}

func (f *followed) step(k EventKind) {
	switch k {
	case EventTaskAssigned, EventTaskRequeued:
		f.now = map[EventKind]TaskState{EventTaskAssigned: Assigned, EventTaskRequeued: Queued}[k]
		f.adopted = Queued // what an earlier attempt had been is nothing to return to
	case EventTaskHeld, EventTaskReleased:
		f.now = map[EventKind]TaskState{EventTaskHeld: Held, EventTaskReleased: Queued}[k]
		f.adopted = Queued
	case EventTaskStarted:
		if f.now == Assigned {
			f.now = Running
		}
	case EventTaskDelivering:
		f.now = Running
	case EventTaskStopping:
		f.now = Stopping
	case EventTaskWithdrawn:
		f.now, f.adopted = Withdrawn, f.now
	case EventTaskDying:
		f.now, f.adopted = Stopping, f.now
	case EventTaskAdopted:
		if f.adopted != Queued {
			f.now, f.adopted = f.adopted, Queued
		}
	default:
	}
}

func TestEveryEventKindHasAName(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range EventKinds() {
		if k.String() == "" || seen[k.String()] {
			t.Errorf("kind %d is named %q", k, k)
		}
		seen[k.String()] = true
	}
}
