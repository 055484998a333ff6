package fsm

import (
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// release executes a Release. Each job gets a code of its own.
func (s *lifecycle) release(x *site, c *command.Release) command.Result {
	var codes []command.Code
	holes := command.MaxGateHoles
	for i := range c.Jobs {
		code := s.moveGates(x, &c.Jobs[i], &holes)
		if code != command.OK && codes == nil {
			codes = make([]command.Code, len(c.Jobs))
		}
		if codes != nil {
			codes[i] = code
		}
	}
	return command.Result{Jobs: codes}
}

// moved counts what a Release has moved of a job, and what of that the queues do not know yet.
type moved struct{ all, queued, held uint32 }

// moveGates does to one job what a Release says. If that makes the job gated, the holes in its range are taken from
// those that the command may still have.
func (s *lifecycle) moveGates(x *site, g *command.JobGates, holes *int) command.Code {
	s.steps.used += stepLook
	seq := x.nums[g.Num]
	switch {
	case seq == 0 && g.Num <= x.maxNum && x.hasRetired(g.Num):
		return command.AlreadyEnded
	case seq == 0:
		return command.UnknownJob
	case s.jobs.Get(seq).over():
		return command.AlreadyEnded
	case !s.jobs.Get(seq).gated &&
		(s.version < command.HoldVersion || !g.Holds() || !s.mayGate(s.jobs.Get(seq), holes)):
		return command.NotHeld
	}
	j := s.mutJob(seq)
	gated := j.gated
	if !gated {
		s.gate(j)
	}
	var n moved
	for i := range g.Runs {
		v := &g.Runs[i]
		if n.queued > 0 && v.Do == command.GateHold || n.held > 0 && v.Do == command.GateRelease {
			s.tellQueues(seq, j, &n)
		}
		s.moveRun(seq, j, v, &n)
	}
	s.tellQueues(seq, j, &n)
	if n.all == 0 && gated {
		return command.NotHeld
	}
	s.endJob(seq, j)
	return command.OK
}

// mayGate takes the holes in a job's range from those that a command may still have, and reports whether it may.
func (s *lifecycle) mayGate(j *job, left *int) bool {
	n := j.holes(*left)
	s.steps.used += uint64(n) * stepLook
	if n > *left {
		return false
	}
	*left -= n
	return true
}

// holes counts the holes in a job's range, up to one more than most. An owner can make any number of them with as many
// commands, and would have one command work on all.
func (j *job) holes(most int) (n int) {
	if j.tasks == nil || j.tasks.ahead == 0 {
		return 0
	}
	runs := &j.tasks.runs
	for range runs.From(runs.Search(func(r *run) bool { return r.to > j.next })) {
		if n++; n > most {
			break
		}
	}
	return n
}

// gate makes a job gated: what waits of its range was released when the job was queued, and still waits. So the queues
// see no change. It takes two steps for each hole in the range.
func (s *lifecycle) gate(j *job) {
	t := j.set(s.epoch) // while it is not gated: a gated job without a set is held as a whole
	for at := j.next; at < j.count; {
		s.steps.used += stepLook
		r, ended := t.findRun(at)
		if ended {
			at = r.to
			continue
		}
		to := j.count
		if r != nil {
			to = r.from
		}
		t.gates().released.add(span{at, to, j.queuedMs})
		at = to
	}
	t.ahead, j.next, j.gated = 0, j.count, true
}

// tellQueues counts in the queues what a Release has moved of a job.
func (s *lifecycle) tellQueues(seq uint64, j *job, n *moved) {
	if n.queued > 0 {
		s.enqueue(seq, j, n.queued)
		s.noteReleased(seq, j, int64(n.queued))
	}
	if n.held > 0 {
		s.dequeue(seq, j, n.held)
		s.unholdIdle(seq, j)
	}
	n.queued, n.held = 0, 0
}

// moveRun does what a Release says of one run of tasks. It examines at most command.MaxGatePieces pieces.
func (s *lifecycle) moveRun(seq uint64, j *job, v *command.GateRun, n *moved) {
	left, to := command.MaxGatePieces, min(v.To, j.count)
	if v.Attempt == 0 || v.Attempt == command.AnyAttempt {
		for at := v.From; left > 0; left-- {
			piece, ok := firstIn(j.spansFor(v.Do), at, to)
			if !ok {
				break
			}
			at = piece.to
			s.moveSpan(seq, j, piece, v, n)
		}
	}
	if v.Attempt == 0 {
		return
	}
	for at := v.From; left > 0; left-- {
		b, ok := j.firstAgain(v.Do, at, to)
		if !ok {
			return
		}
		at = b.task + 1
		if v.Attempt == command.AnyAttempt || v.Attempt == b.attempt {
			s.moveTask(seq, j, b.task, v, n)
		}
	}
}

// spansFor returns the spans from which an action takes tasks, for reading only.
func (j *job) spansFor(do command.GateAction) *store.Sorted[span] {
	if do == command.GateHold {
		return j.tasks.released()
	}
	return j.heldSpans()
}

// firstAgain returns the first task in [from, to) that has run and that an action may take.
func (j *job) firstAgain(do command.GateAction, from, to uint32) (backTask, bool) {
	var b *backTask
	if do == command.GateHold {
		l := j.tasks.back()
		b = l.Get(l.Search(func(b *backTask) bool { return b.task >= from }))
	} else {
		l := j.tasks.again()
		if held := l.Get(l.Search(func(b *heldTask) bool { return b.task >= from })); held != nil {
			b = &held.backTask
		}
	}
	if b == nil || b.task >= to {
		return backTask{}, false
	}
	return *b, true
}

// moveSpan moves tasks that never ran.
func (s *lifecycle) moveSpan(seq uint64, j *job, piece span, v *command.GateRun, n *moved) {
	s.steps.used += stepEnd
	t, x := j.set(s.epoch), s.sites[j.owner]
	g, tasks := t.gates(), piece.to-piece.from
	n.all += tasks
	switch v.Do {
	case command.GateRelease:
		g.held.cut(piece)
		g.released.add(span{piece.from, piece.to, s.time})
		n.queued += tasks
		x.held -= uint64(tasks)
		s.tellReleased(j, piece.from, tasks, 0)
	case command.GateHold:
		g.released.cut(piece)
		g.held.add(span{from: piece.from, to: piece.to})
		n.held += tasks
		x.held += uint64(tasks)
		s.noteSpanWithdrawn(seq, j, int64(tasks), piece.queuedMs)
		s.tellHeld(j, piece.from, tasks)
	case command.GateFail, command.GateCancel:
		g.held.cut(piece)
		x.held -= uint64(tasks)
		s.endSpan(j, t, piece, endState(v.Do), strings.Clone(v.Reason))
	}
}

// moveTask moves a task that has run.
func (s *lifecycle) moveTask(seq uint64, j *job, task uint32, v *command.GateRun, n *moved) {
	s.steps.used += stepEnd
	x := s.sites[j.owner]
	n.all++
	switch v.Do {
	case command.GateRelease:
		b := s.dropHeld(seq, j, task)
		b.queuedMs = s.time
		j.set(s.epoch).addBack(b.backTask)
		n.queued++
		x.held--
		s.tellReleased(j, task, 1, b.attempt)
	case command.GateHold:
		t := j.set(s.epoch)
		b := *t.findBack(task)
		t.dropBack(task)
		s.closeDoubt(j, &b, doubtNone, "its owner holds its task")
		s.noteSpanWithdrawn(seq, j, 1, b.queuedMs)
		b.queuedMs = s.time
		s.addHeld(seq, j, heldTask{backTask: b, since: s.index})
		n.held++
		x.held++
		s.tellHeldTask(j, &b)
	case command.GateFail, command.GateCancel:
		x.held--
		s.endHeldTask(seq, j, task, endState(v.Do), strings.Clone(v.Reason))
	}
}

func endState(do command.GateAction) TaskState {
	if do == command.GateFail {
		return TaskFailed
	}
	return TaskCancelled
}

// endSpan ends tasks that never ran and have left their span. Of a single one a record is kept.
func (s *lifecycle) endSpan(j *job, t *taskSet, v span, state TaskState, why string) {
	if v.to-v.from == 1 {
		s.noteEnd(j, t, state, record{
			task: v.from, site: -1, queuedMs: j.queuedMs, assignedMs: -1, startedMs: -1, endedMs: s.time, detail: why,
		})
		return
	}
	s.sites[j.owner].use.tasks -= uint64(v.to - v.from)
	t.addRun(run{from: v.from, to: v.to, state: state, endedMs: s.time})
	s.tellEnded(j, v.from, v.to, state, why)
	if t.why == "" {
		t.why = why
	}
}

// endHeldTask ends a task that is held after an attempt. An event has told that attempt's end already.
func (s *lifecycle) endHeldTask(seq uint64, j *job, task uint32, state TaskState, why string) {
	b := s.dropHeld(seq, j, task)
	r := b.endRecord(s.time, state, why)
	told := r
	told.site, told.machine, told.token, told.facts, told.startedMs = -1, "", 0, nil, -1
	s.noteEndAs(j, j.set(s.epoch), state, r, &told)
}

// cancelHeld ends one task of a gated job that neither runs, nor waits after an attempt, nor delivers.
func (s *lifecycle) cancelHeld(seq uint64, j *job, task uint32, why string) command.Code {
	t, x := j.set(s.epoch), s.sites[j.owner]
	g := t.gates()
	one := span{from: task, to: task + 1}
	waits := findSpan(&g.released.list, task)
	switch {
	case t.findAgain(task) != nil:
		x.held--
		x.againLeft = s.index
		s.endHeldTask(seq, j, task, TaskCancelled, why)
	case findSpan(&g.held.list, task) != nil:
		x.held--
		g.held.cut(one)
		s.endSpan(j, t, one, TaskCancelled, why)
	case waits != nil:
		queuedMs := waits.queuedMs
		g.released.cut(one)
		s.endSpan(j, t, one, TaskCancelled, why)
		s.dequeue(seq, j, 1)
		s.noteSpanWithdrawn(seq, j, 1, queuedMs)
		s.unholdIdle(seq, j)
	default:
		return command.AlreadyEnded
	}
	s.endJob(seq, j)
	return command.OK
}

// endReleased ends released tasks that never ran, and returns how many.
func (s *lifecycle) endReleased(seq uint64, j *job, t *taskSet, state TaskState, why string) (n uint32) {
	for v := t.released().First(); v != nil && (n == 0 || !s.steps.spent()); v = t.released().First() {
		one := *v
		s.steps.used += stepEnd
		t.gates().released.cut(one)
		t.addRun(run{from: one.from, to: one.to, state: state, endedMs: s.time})
		s.tellEnded(j, one.from, one.to, state, why)
		s.noteSpanWithdrawn(seq, j, int64(one.to-one.from), one.queuedMs)
		n += one.to - one.from
	}
	return n
}

// endHeld ends held tasks, and returns how many: at least one, unless the caller already did something.
func (s *lifecycle) endHeld(seq uint64, j *job, t *taskSet, state TaskState, why string, did bool) (n uint32) {
	g := t.gating()
	if g == nil {
		return 0
	}
	for v := g.held.list.First(); v != nil && (!did || !s.steps.spent()); v, did = g.held.list.First(), true {
		one := *v
		s.steps.used += stepEnd
		g.held.cut(one)
		t.addRun(run{from: one.from, to: one.to, state: state, endedMs: s.time})
		s.tellEnded(j, one.from, one.to, state, why)
		n += one.to - one.from
	}
	for ; g.again.Len() > 0 && (!did || !s.steps.spent()); did = true {
		b := s.dropHeld(seq, j, g.again.First().task)
		s.sites[j.owner].againLeft = s.index
		s.steps.used += stepEnd
		s.keepRecord(j, t, b.endRecord(s.time, state, why))
		t.addRun(run{from: b.task, to: b.task + 1, state: state, endedMs: s.time})
		s.tellEnded(j, b.task, b.task+1, state, why)
		n++
	}
	return n
}

// prioritize executes a Prioritize, like renice.
func (s *State) prioritize(x *site, c *command.Prioritize) {
	for _, p := range c.Jobs {
		s.reorderAs(x, p.Num, func(was int32, nice uint32) int32 {
			if was != p.Priority {
				s.tellPriority(s.jobs.Get(x.nums[p.Num]), was, p.Priority)
			}
			return command.Order(p.Priority, nice)
		})
	}
}
