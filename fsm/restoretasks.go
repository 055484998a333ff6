package fsm

import (
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// machine returns the machine with a name that the site offers, or nil.
func (x *site) machine(name string) *machine {
	i, ok := slices.BinarySearchFunc(x.machines, name, func(m *machine, n string) int {
		return strings.Compare(m.name, n)
	})
	if !ok {
		return nil
	}
	return x.machines[i]
}

// tasks reads a job's task set and checks that every task is in exactly one place.
func (r *snapReader) tasks(s *State, seq uint64, j *job) {
	t := j.tasks
	t.why = r.text(command.MaxDetail, "detail")
	if at := uint32(r.upTo(uint64(len(s.sites)), "site of a cancel")); at > 0 {
		t.rare().cancel = at
	}
	if bars := r.bars(s); len(bars) > 0 {
		t.rare().bars = bars
	}
	r.runs(s, j, t)
	r.back(s, j, t)
	r.gating(s, seq, j, t)
	r.delivering(s, seq, j, t)
	r.live(s, seq, j, t)
	r.records(s, j, t)
	if r.err != nil {
		return
	}
	live := t.live[0] + t.live[1] + t.live[2] + t.live[3] + t.live[4]
	below := t.endedTasks() - t.ahead
	gated := uint32(0)
	if g := t.gating(); g != nil {
		gated = g.held.tasks + g.released.tasks + uint32(g.again.Len())
	}
	r.check(below+uint32(t.back().Len()+t.delivering().Len())+live+gated == j.next, "tasks are missing")
	if _, hole := t.findRun(j.next); hole && j.next < j.count {
		r.fail("the range starts with an ended task")
	}
}

func (r *snapReader) runs(s *State, j *job, t *taskSet) {
	var last run
	for i := range r.upTo(uint64(j.count), "runs") {
		v := run{from: r.u32("task"), to: r.u32("task"), state: TaskState(r.upTo(uint64(TaskLost), "state"))}
		v.exit, v.endedMs = r.i32("exit code"), r.ms(-1, s.time)
		r.check(v.from < v.to && v.to <= j.count && v.state.Ended() && v.from >= last.to, "runs out of order")
		r.check(i == 0 || v.from > last.to || !v.like(last), "runs not joined")
		r.check(v.from >= j.next || v.to <= j.next || v.to > j.next, "runs out of order")
		if r.err != nil {
			return
		}
		last = v
		t.runs.Insert(t.runs.End(), v)
		t.ends[v.state-TaskSucceeded] += v.to - v.from
		if v.to > j.next {
			t.ahead += v.to - max(v.from, j.next)
		}
	}
}

func (r *snapReader) back(s *State, j *job, t *taskSet) {
	last := int64(-1)
	for range r.upTo(uint64(j.count), "returned tasks") {
		b := backTask{
			task: r.u32("task"), attempt: r.u32("attempt"),
			failures: r.u32("failures"), losses: r.losses(s), doubts: r.u32("doubts"),
		}
		b.queuedMs = r.ms(0, s.time)
		_, ended := t.findRun(b.task)
		r.check(b.task < j.next && !ended && b.attempt > 0 && int64(b.task) > last, "returned tasks out of order")
		if r.err != nil {
			return
		}
		last = int64(b.task)
		t.rare().back.Insert(t.back().End(), b)
	}
}

func (r *snapReader) bars(s *State) []bar {
	var out []bar
	for range r.upTo(MaxMembers, "bars") {
		b := bar{site: int32(r.upTo(MaxMembers, "site")), offers: r.uint()}
		if r.err != nil || int(b.site) >= len(s.sites) || b.offers > s.sites[b.site].offers {
			r.fail("a bar against an offer that never was")
			return nil
		}
		n := len(out)
		r.check(n == 0 || out[n-1].site < b.site, "bars out of order")
		out = append(out, b)
	}
	return out
}

func (r *snapReader) live(s *State, seq uint64, j *job, t *taskSet) {
	last := int64(-1)
	for range r.upTo(uint64(j.count), "attempts") {
		a := attempt{seq: seq, task: r.u32("task"), attempt: r.u32("attempt"), token: r.upTo(s.index, "token")}
		a.site = int32(r.upTo(MaxMembers, "site"))
		a.failures, a.losses, a.doubts = r.u32("failures"), r.losses(s), r.u32("doubts")
		a.phase = attemptPhase(r.upTo(uint64(phaseAwaitingBound), "state"))
		a.phaseBefore = attemptPhase(r.upTo(uint64(phaseStopping), "state"))
		name := r.text(command.MaxMachineName, "machine")
		a.weight = r.within(0, command.MaxTaskWeight, "weight")
		a.queuedMs, a.assignedMs, a.startedMs = r.ms(0, s.time), r.ms(0, s.time), r.ms(-1, s.time)
		a.boundMs = r.within(0, maxBoundMs, "bound")
		a.stopMs = r.within(0, sched.MaxNow+s.bounds.stopMs, "stop")
		marks := r.upTo(1|uint64(lastWord)<<1, "marks")
		a.given, a.word = marks&1 != 0, word(marks>>1)
		r.check((a.phase == phaseStopping) == (a.stopMs > 0), "an attempt stops without an end, or goes on with one")
		a.why = r.text(command.MaxDetail, "reason")
		_, ended := t.findRun(a.task)
		idle := !ended && t.findBack(a.task) == nil && t.findDelivery(a.task) == nil && !t.isGated(a.task)
		r.check(a.task < j.next && int64(a.task) > last && idle && a.attempt > 0 && int(a.site) < len(s.sites),
			"attempts out of order")
		if r.err != nil {
			return
		}
		last = int64(a.task)
		r.attempt(s, &a, j, t, name)
	}
}

// machineOf returns a site's machine with a name, and makes one if it is no longer offered.
func (x *site) machineOf(name string) *machine {
	if m := x.machine(name); m != nil {
		return m
	}
	if m := x.former[name]; m != nil {
		return m
	}
	m := &machine{site: x, name: name}
	x.keepFormer(m)
	return m
}

// attempt adds a live attempt, on a machine that may no longer be offered.
func (r *snapReader) attempt(s *State, a *attempt, j *job, t *taskSet, name string) {
	x := s.sites[a.site]
	if err := command.CheckMachineName(name); err != nil {
		r.fail("%v", err)
		return
	}
	left := r.hasChore(s, x.id)
	isAway := a.site == j.owner && (x.parked() || left) && a.startedMs < 0
	r.check(a.phase != phaseAway || isAway, "an attempt is away from a site that is here")
	isDying := a.boundMs > 0 && a.startedMs < 0 && (a.given || !x.present() || left)
	r.check(a.phase != phaseAwaitingBound || isDying, "an attempt is dying without a bound or a loss")
	r.check(a.word == wordNone || left, "what a registration said is left without its work")
	r.check(a.phase == phaseAwaitingBound || !a.given, "an attempt is given up and goes on")
	r.check(a.startedMs < 0 || a.queuedMs <= a.startedMs, "an attempt started before it was queued")
	if r.err != nil {
		return
	}
	a.machine = x.machineOf(name)
	a.machine.use(j.class.Need, 1)
	s.weigh(a.machine)
	t.live[a.phase]++
	start := a.startedMs
	a.startedMs = -1
	s.addAttempt(a)
	s.weighTotals(x)
	if start >= 0 {
		began := j.startedMs
		s.setStarted(s.attempts.Mut(s.live[taskKey{a.seq, a.task}], s.epoch), start)
		r.check(began >= 0 && began <= start, "a job started after its task")
	}
}

func (r *snapReader) records(s *State, j *job, t *taskSet) {
	most := uint64(j.count)
	if j.count > s.bounds.detail {
		most = 0
	}
	for range r.upTo(most, "records") {
		v := r.record(s, j)
		last := t.records.Final()
		_, ended := t.findRun(v.task)
		r.check(ended && v.site >= -1 && int(v.site) < len(s.sites) && (last == nil || last.task < v.task),
			"records out of order")
		if r.err != nil {
			return
		}
		t.records.Insert(t.records.End(), v)
	}
}

// record reads what record.encode wrote.
func (r *snapReader) record(s *State, j *job) record {
	v := record{
		task: r.u32("task"), attempt: r.u32("attempt"),
		failures: r.u32("failures"), losses: r.losses(s), token: r.uint(),
	}
	v.exit, v.signal, v.site = r.i32("exit code"), r.i32("signal"), r.i32("site")
	v.queuedMs, v.assignedMs = r.ms(0, s.time), r.ms(-1, s.time)
	v.startedMs, v.endedMs = r.ms(-1, s.time), r.ms(-1, s.time)
	v.machine, v.detail = r.text(command.MaxMachineName, "machine"), r.text(command.MaxDetail, "detail")
	v.facts = r.facts(j)
	return v
}
