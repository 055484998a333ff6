package gates

import (
	"cmp"
	"iter"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

const (
	// watchPerTurn gated jobs are watched in a turn for changes: the net, for what the state does not tell.
	watchPerTurn = 200
	// looksPerTurn bounds the jobs that one command is decided for, spansPerJob the spans of each, and spansPerTurn
	// those of all.
	looksPerTurn = 500
	spansPerJob  = 1000
	spansPerTurn = 5000
	// piecesPerPage are read of a job's held tasks at a time.
	piecesPerPage = 5000
	// piecesPerMs: a job is not looked at again before a millisecond has passed for so many pieces of what it holds, so
	// that looks take a small part of the core's time however much is held.
	piecesPerMs = 100
	// pauseMs is after how long a job is looked at again of which the state has refused what was decided.
	pauseMs = 1000
	// forgetAfter is for how long nobody may know a job, in nanoseconds, before it counts as forgotten.
	forgetAfter = 10e9
)

// Settle decides what is due, and has it ordered: one command for all jobs, and no other until its outcome is known.
func (b *Book) Settle(s turn.StateReader, fx *turn.Effects) {
	if len(b.jobs) == 0 {
		return
	}
	now := b.stateNow(s)
	b.markReturned(s)
	b.watch(s, fx)
	b.markDue(now)
	if b.sending || s.Version() < command.GatesVersion {
		return
	}
	b.decide(now, s, fx)
}

// markDue has the jobs looked at whose moment has come.
func (b *Book) markDue(now int64) {
	if b.soonestMs == 0 || b.soonestMs > now {
		return
	}
	b.soonestMs = 0
	for j := range b.timers {
		if j.nextMs > now {
			b.setNext(j, j.nextMs)
			continue
		}
		b.setNext(j, 0)
		b.mark(j)
	}
}

// stateNow returns the state's time as it is by now: it moves with entries, at least once a second.
func (b *Book) stateNow(s turn.StateReader) int64 {
	if t := s.Time(); t != b.stateMs {
		b.stateMs, b.stateBoot = t, b.Now.Boot
	}
	return b.stateMs + (b.Now.Boot-b.stateBoot)/1e6
}

// markReturned has the jobs looked at whose tasks have come back to be held.
func (b *Book) markReturned(s turn.StateReader) {
	change := s.ReturnedChange(b.Name)
	if change == b.returned {
		return
	}
	changed, _ := s.ReturnedSince(b.Name, b.returned)
	for i := range changed {
		if j := b.jobs[changed[i].Job.Num]; j != nil {
			b.mark(j)
		}
	}
	b.returned = change
}

// watch looks in turns for jobs whose counts have changed or that nobody has any more, since they were cancelled or
// refused before the state knew them, and at what tasks wait for.
func (b *Book) watch(s turn.StateReader, fx *turn.Effects) {
	for range min(watchPerTurn, len(b.watched)) {
		if b.next >= len(b.watched) {
			b.next = 0
		}
		j := b.watched[b.next]
		b.next++
		counts, known := s.TaskCounts(command.JobID{Site: b.Name, Num: j.num})
		if counts != j.counts || !known && !b.Pending(j.num) {
			b.mark(j)
		}
		for _, id := range j.rules.Each {
			b.refresh(b.targets[id.Num], s, fx)
		}
	}
}

// refresh follows the tasks of a job that others wait for.
func (b *Book) refresh(t *target, s turn.StateReader, fx *turn.Effects) {
	if t.over {
		return
	}
	id := command.JobID{Site: b.Name, Num: t.num}
	counts, read, known := b.Own(t.num)
	if !known {
		counts, known = s.TaskCounts(id)
		read = func() Elements { return elementsIn(s, id) }
	}
	switch {
	case !known && !b.isForgotten(t, s):
		return
	case !known:
		t.Forget()
	case counts == t.counts:
		return
	default:
		t.Elements, t.counts, t.missed = read(), counts, 0
	}
	if t.over = t.Unknown || counts.JobState().Ended(); t.over {
		key := record.Number(t.num)
		fx.Writes = append(fx.Writes, record.Put(record.BucketElements, key, t.Encode()))
	}
	for _, num := range t.jobs {
		b.mark(b.jobs[num])
	}
}

// isForgotten reports whether nobody will ever know again how a job has ended that nobody knows now.
func (b *Book) isForgotten(t *target, s turn.StateReader) bool {
	switch {
	case b.Pending(t.num):
		t.missed = 0
	case s.Retired(command.JobID{Site: b.Name, Num: t.num}):
		return true
	case t.missed == 0:
		t.missed = b.Now.Boot
	default:
		return b.Now.Boot-t.missed >= forgetAfter
	}
	return false
}

// elementsIn reads from the state how a job's tasks stand.
func elementsIn(s turn.StateReader, id command.JobID) (e Elements) {
	at := uint32(0)
	for run := range s.EndedRuns(id) {
		e.Add(run.From-at, Pending)
		standing := Never
		if run.State == fsm.TaskSucceeded {
			standing = OK
		}
		e.Add(run.To-run.From, standing)
		at = run.To
	}
	return e
}

// setNext has a job looked at at a moment, 0 = at none.
func (b *Book) setNext(j *Job, ms int64) {
	if j.nextMs = ms; ms > 0 {
		b.timers[j] = true
		if b.soonestMs == 0 || ms < b.soonestMs {
			b.soonestMs = ms
		}
	} else {
		delete(b.timers, j)
	}
}

// decide looks at the jobs that are marked, and has ordered what is to be done.
func (b *Book) decide(now int64, s turn.StateReader, fx *turn.Effects) {
	release := &command.Release{}
	spans, looks := 0, 0
	marked := b.dirty
	b.dirty = nil
	for _, j := range marked {
		if spans >= spansPerTurn || looks >= looksPerTurn {
			b.dirty = append(b.dirty, j)
			continue
		}
		j.dirty = false
		if b.jobs[j.num] != j {
			continue // it has ended
		}
		if wait := j.restUntil - b.Now.Boot; wait > 0 {
			b.setNext(j, now+(wait+999_999)/1e6)
			continue
		}
		looks++
		if runs := b.look(j, now, s, fx); len(runs) > 0 {
			spans += len(runs)
			release.Jobs = append(release.Jobs, command.JobGates{Num: j.num, Runs: runs})
		}
	}
	if len(release.Jobs) == 0 {
		return
	}
	slices.SortFunc(release.Jobs, func(x, y command.JobGates) int { return cmp.Compare(x.Num, y.Num) })
	b.sending = true
	b.Out.Add(release, func(r command.Result, s turn.StateReader, _ *turn.Effects) { b.executed(release, r, s) })
}

// executed looks again at the jobs of a command. What the state has not done as it was decided waits a while.
func (b *Book) executed(release *command.Release, r command.Result, s turn.StateReader) {
	b.sending = false
	for i := range release.Jobs {
		j := b.jobs[release.Jobs[i].Num]
		switch {
		case j == nil:
		case r.Code == command.OK && (r.Jobs == nil || r.Jobs[i] == command.OK):
			b.mark(j)
		case s != nil:
			b.setNext(j, b.stateNow(s)+pauseMs)
		default:
			b.setNext(j, b.stateMs+pauseMs)
		}
	}
}

// look decides about one job.
func (b *Book) look(j *Job, now int64, s turn.StateReader, fx *turn.Effects) []command.GateRun {
	id := command.JobID{Site: b.Name, Num: j.num}
	b.setNext(j, 0)
	counts, known := s.TaskCounts(id)
	switch {
	case !known && b.Pending(j.num):
		return nil
	case !known || counts.JobState().Ended():
		b.drop(j, fx)
		return nil
	}
	j.counts, j.Waiting, j.pieces = counts, Waiting{}, 0
	defer func() { j.restUntil = b.Now.Boot + int64(j.pieces/piecesPerMs)*1e6 }()
	var d Decision
	switch {
	case j.unreadable != "":
		j.Waiting.Unreadable = counts[fsm.Held]
	case counts[fsm.Held] > 0:
		d = b.decideOn(j, now, s, fx)
	}
	if j.Hold && (counts[fsm.Queued] > 0 || !j.isGatedIn(s, id)) {
		return withHolds(runsOf(&d), holdsOf(j.count, queuedIn(s, id)))
	}
	return runsOf(&d)
}

// isGatedIn reports whether the state has a job as gated: else it is to become so, that nothing of it is tried again.
func (j *Job) isGatedIn(s turn.StateReader, id command.JobID) bool {
	if !j.gated {
		v, _ := s.Gates(id, 0, 1)
		j.gated = v.Gated
	}
	return j.gated
}

// decideOn decides by the rules of a job what becomes of its held tasks.
func (b *Book) decideOn(j *Job, now int64, s turn.StateReader, fx *turn.Effects) Decision {
	v := View{
		Held: b.heldIn(j, s), Hold: j.Hold, Cancelled: j.cancelled, CancelWhy: j.cancelWhy,
		Open: j.count - j.counts[fsm.Held],
	}
	for state := fsm.TaskSucceeded; state <= fsm.TaskLost; state++ {
		v.Open -= j.counts[state]
	}
	for _, e := range j.rules.Each {
		t := b.targets[e.Num]
		b.refresh(t, s, fx)
		v.Each = append(v.Each, t.Elements)
	}
	d := j.rules.Decide(v, now, spansPerJob)
	j.Waiting = d.Waiting
	b.setNext(j, d.NextMs)
	return d
}

// runsOf returns a decision's form in a command.
func runsOf(d *Decision) []command.GateRun {
	runs := make([]command.GateRun, 0, len(d.Release)+len(d.End))
	add := func(s Span, do command.GateAction, reason string) {
		runs = append(runs, command.GateRun{
			From: s.First, To: s.First + s.Count, Attempt: s.Attempt, Do: do, Reason: command.Clip(reason),
		})
	}
	for _, s := range d.Release {
		add(s, command.GateRelease, "")
	}
	for i := range d.End {
		do := command.GateCancel
		if d.End[i].Failed {
			do = command.GateFail
		}
		add(d.End[i].Span, do, d.End[i].Reason)
	}
	slices.SortFunc(runs, func(x, y command.GateRun) int { return cmp.Compare(x.From, y.From) })
	return runs
}

// heldIn yields the tasks of a job that are held in the state, by position, and counts what it costs.
func (b *Book) heldIn(j *Job, s turn.StateReader) iter.Seq[Run] {
	id := command.JobID{Site: b.Name, Num: j.num}
	return func(yield func(Run) bool) {
		for from := uint32(0); ; {
			v, known := s.Gates(id, from, piecesPerPage)
			if !known {
				return
			}
			var page []Run
			for _, r := range v.Held {
				page = append(page, Run{First: r.From, Count: r.To - r.From})
			}
			for i := range v.Returned {
				t := &v.Returned[i]
				page = append(page, Run{
					First: t.Task, Count: 1, Attempt: t.Attempt, Failures: t.Failures, Failed: isFailure(t.End),
					TimedOut: t.End == fsm.EndTimedOut, ExitCode: t.ExitCode, Signal: t.Signal, SinceMs: t.SinceMs,
				})
			}
			slices.SortFunc(page, func(x, y Run) int { return cmp.Compare(x.First, y.First) })
			j.pieces += len(page)
			for _, r := range page {
				if !yield(r) {
					return
				}
			}
			if from = v.Next; from == 0 {
				return
			}
		}
	}
}
