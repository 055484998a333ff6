package fsm

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// A leftover is an attempt whose task is settled, or waits again, although nobody has reported the end of
// its process. Its room stays taken until its site reports the end or it is certainly dead. It is in
// phaseLeft, in its site's list, and in State.leftovers; its job, which may be gone, no longer counts it.

// leftover is what such an attempt still needs from its job. It is never changed.
type leftover struct {
	owner int32
	num   uint64
	need  command.Resources
	doubt doubt
	// startedMs is the reported start of one in doubt, whose former phase is attempt.phaseBefore;
	// −1 = none. It does not count as running meanwhile.
	startedMs int64
}

// leftKey identifies a leftover; a task may have several.
type leftKey struct {
	owner         int32
	num           uint64
	task, attempt uint32
}

func (a *attempt) leftKey() leftKey { return leftKey{a.left.owner, a.left.num, a.task, a.attempt} }

// findLeft returns the slot of the leftover that ref names at site x, or false.
func (s *attemptTable) findLeft(ref *command.AttemptRef, x *site) (uint64, bool) {
	owner := s.byName[ref.Job.Site]
	if owner == nil {
		return 0, false
	}
	slot, ok := s.leftovers[leftKey{owner.id, ref.Job.Num, ref.Task, ref.Attempt}]
	if !ok {
		return 0, false
	}
	a := s.attempts.Get(slot)
	return slot, a.site == x.id && a.token == ref.Token
}

// leaveOver settles an attempt's task, as lost or, if that was requested, as cancelled, and keeps the
// attempt, which may still run. given means that its own site has lost it: then only its bound ends it.
func (s *lifecycle) leaveOver(slot uint64, given bool, why string) {
	s.steps.used += stepSettle
	a := *s.attempts.Get(slot)
	s.unsetStarted(&a)
	r := s.recordOf(&a)
	r.detail = why
	s.detach(slot)
	p := s.keepLeft(slot, doubtNone)
	p.given, p.why = given, cmp.Or(p.why, "its task was given up")
	s.watch(slot)
	s.touch(slot)
	s.sites[a.site].taken = s.index
	s.settleTask(&a, r, command.Lost)
	s.noteNotRun(&a)
}

// keepLeft turns a live attempt into a leftover.
func (s *lifecycle) keepLeft(slot uint64, d doubt) *attempt {
	p := s.attempts.Mut(slot, s.epoch)
	j := s.jobs.Get(p.seq)
	p.left = &leftover{owner: j.owner, num: j.num, need: j.class.Need, doubt: d, startedMs: p.startedMs}
	if p.phaseBefore = p.phase; d == doubtNone {
		p.phaseBefore, p.left.startedMs = phaseAssigned, -1
	}
	p.phase, p.startedMs, p.length, p.stopMs = phaseLeft, -1, 0, 0
	s.leftovers[p.leftKey()] = slot
	return p
}

// dropLeft ends a leftover and frees what it took.
func (s *lifecycle) dropLeft(slot uint64) {
	s.steps.used += stepSettle
	a := s.attempts.Get(slot)
	x := s.sites[a.site]
	s.unwatch(slot)
	delete(s.leftovers, a.leftKey())
	s.free(slot, a.left.need)
	x.taken = s.index
}

// settleUnanswered settles an attempt that its site was to stop and whose end the site did not report in time. If a
// bound says that it is dead, nothing of it is kept.
func (s *lifecycle) settleUnanswered(slot uint64) {
	a := s.attempts.Get(slot)
	if a.boundMs > 0 && a.boundMs <= s.time {
		s.drop(slot, command.Lost)
		return
	}
	s.leaveOver(slot, false, fmt.Sprintf(
		"%s; %s did not report its end within %d s, and its cores stay taken there until it does",
		a.why, s.sites[a.site].name, s.bounds.stopMs/1000))
}

// answerForLeft settles a leftover by its site's registration. If held, it is still to be stopped there.
// If lost, or given up before, it ends at its bound if it has one, and by then it is decided whether its
// loss counts. Otherwise it is dead.
func (s *lifecycle) answerForLeft(slot uint64, held, lost bool) {
	a := s.attempts.Mut(slot, s.epoch)
	switch {
	case held && !a.given:
		s.touch(slot)
	case lost && a.boundMs > s.time:
		a.given = true
		a.settleDoubt()
		s.touch(slot)
	default:
		s.dropLeft(slot)
	}
}

// applyChoreToLeft applies a chore to a leftover. Its site is lost or has left, and the lease ends what has no
// bound, unless the leftover is the site's own; or the site departs permanently; or it has registered; or
// it is heard again. For one in doubt the outcome is the same as without the doubt.
func (s *lifecycle) applyChoreToLeft(k choreKind, slot uint64) {
	if k == choreDoubt {
		return
	}
	if k != choreOwn && s.attempts.Get(slot).left.doubt == doubtOpen {
		s.resume(slot)
		s.applyChore(k, slot)
		return
	}
	if k == choreAway {
		s.countLoss(slot, bySite)
	}
	switch a := s.attempts.Get(slot); {
	case k == choreAnswer:
		s.answer(slot)
	case k == choreOwn, k == choreAway && a.boundMs == 0 && a.left.owner != a.site:
		s.dropLeft(slot)
	}
}

// leftInOrder returns the leftovers by owner, job, task and attempt.
func (f *Frozen) leftInOrder() []*attempt {
	var out []*attempt
	for _, a := range f.attempts.All() {
		if a.phase == phaseLeft {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *attempt) int { return a.leftKey().compare(b.leftKey()) })
	return out
}

func (k leftKey) compare(o leftKey) int {
	return cmp.Or(
		cmp.Compare(k.owner, o.owner), cmp.Compare(k.num, o.num),
		cmp.Compare(k.task, o.task), cmp.Compare(k.attempt, o.attempt),
	)
}

func (a *attempt) encodeLeft(w *snapWriter) {
	w.uint(uint64(a.left.owner), a.left.num, uint64(a.task), uint64(a.attempt), a.seq, a.token, uint64(a.site))
	w.text(a.machine.name)
	w.res(a.left.need)
	w.int(a.boundMs)
	w.uint(marks(a.given)|uint64(a.word)<<1, uint64(a.left.doubt))
	w.text(a.why)
	if a.left.doubt != doubtNone {
		w.uint(uint64(a.phaseBefore), uint64(a.failures), uint64(a.losses), uint64(a.doubts))
		w.int(a.weight, a.queuedMs, a.assignedMs, a.left.startedMs)
	}
}

// leftovers reads what encodeLeft wrote.
func (r *snapReader) leftovers(s *State) {
	var last leftKey
	for range r.upTo(MaxMembers*command.MaxHeld, "leftovers") {
		l := &leftover{owner: int32(r.upTo(MaxMembers, "owner")), num: r.uint()}
		a := attempt{
			phase: phaseLeft, left: l, startedMs: -1,
			task:    uint32(r.upTo(command.MaxCount-1, "task")),
			attempt: r.u32("attempt"),
			seq:     r.upTo(s.nextSeq-1, "seq"),
			token:   r.upTo(s.index, "token"),
		}
		a.site = int32(r.upTo(MaxMembers, "site"))
		name := r.text(command.MaxMachineName, "machine")
		l.need, a.boundMs = r.res(), r.within(0, maxBoundMs, "bound")
		m := r.upTo(1|uint64(lastWord)<<1, "marks")
		a.given, a.word = m&1 != 0, word(m>>1)
		l.doubt, l.startedMs = doubt(r.upTo(uint64(lastDoubt), "doubt")), -1
		if a.why = r.text(command.MaxDetail, "reason"); l.doubt != doubtNone {
			r.inDoubt(s, &a)
		}
		known := r.err == nil && int(l.owner) < len(s.sites) && int(a.site) < len(s.sites)
		if r.err == nil && (!known || command.CheckMachineName(name) != nil) {
			r.fail("a leftover of no site or machine")
		}
		if r.err != nil {
			return
		}
		key := a.leftKey()
		r.check(last.compare(key) < 0 && a.attempt > 0 && l.num > 0 && l.num <= s.sites[l.owner].maxNum,
			"leftovers out of order")
		r.check(command.CheckResources("", l.need) == nil && l.need.MilliCPU > 0 && (a.boundMs > 0 || !a.given),
			"a leftover of nothing, or that nothing ends")
		if slot, ok := s.live[taskKey{a.seq, a.task}]; ok {
			r.check(s.attempts.Get(slot).attempt > a.attempt, "a leftover is live")
		}
		r.check(l.doubt != doubtOpen || s.isReturned(&a), "an attempt is in doubt whose task does not wait")
		if r.err != nil {
			return
		}
		last = key
		a.machine = s.sites[a.site].machineOf(name)
		a.machine.use(l.need, 1)
		s.leftovers[key] = s.enterSlot(&a)
		s.weigh(a.machine)
		s.watch(s.leftovers[key])
	}
}
