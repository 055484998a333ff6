package fsm

import (
	"container/heap"
	"strings"

	"github.com/cloudshare/cloudshare/sched"
)

// maxBoundMs is beyond every log time at which an attempt can be certainly dead.
const maxBoundMs = sched.MaxNow + 2*MaxTimeoutMs

// bound executes a Bound. It only grows, so that a repeat under a later entry is
// safe. What is not merely assigned needs none: it is to be stopped, or is out
// of its site's hands.
func (s *State) bound(x *site, c *Bound) {
	for i := range c.Attempts {
		b := &c.Attempts[i]
		slot, ok := s.findAttempt(&b.AttemptRef, x)
		if !ok || s.attempts.get(slot).way != wayAssigned {
			continue
		}
		a := s.attempts.mut(slot, s.epoch)
		a.boundMs = max(a.boundMs, s.time+b.BoundMs+s.params.MarginMs)
		s.touch(slot)
	}
}

// stopping reports whether the end of the attempt was asked for.
func (a *attempt) stopping() bool {
	return a.way == wayStopping || (a.way == wayAway || a.way == wayDying) && a.off == wayStopping
}

// mayLive reports whether a lost attempt must be waited for. Those of Immediate
// jobs may overlap, as their owners chose.
func (s *State) mayLive(slot uint64) bool {
	a := s.attempts.get(slot)
	return a.boundMs > s.time && s.jobs.get(a.seq).onLoss != Immediate
}

// lost settles an attempt whose site is lost, or waits for its bound.
func (s *State) lost(slot uint64) {
	if s.mayLive(slot) {
		s.shelve(slot, wayDying)
		return
	}
	s.drop(slot, Lost)
}

// giveUp settles an attempt that its own site lost, or waits for its bound.
func (s *State) giveUp(slot uint64) {
	if s.mayLive(slot) {
		s.doom(slot, "")
		return
	}
	s.drop(slot, Lost)
}

// doom waits for the bound of an attempt that its own site lost; why is that
// site's word on it.
func (s *State) doom(slot uint64, why string) {
	s.shelve(slot, wayDying)
	s.touch(slot)
	a := s.attempts.mut(slot, s.epoch)
	a.given = true
	if !a.stopping() {
		a.why = strings.Clone(why)
	}
}

// shelve takes an attempt out of its site's hands, to wayAway or wayDying. It
// does not count as running meanwhile; its room stays taken.
func (s *State) shelve(slot uint64, to way) {
	a := s.attempts.mut(slot, s.epoch)
	if a.way == wayDying {
		return
	}
	s.unsetStarted(a)
	a.startedMs = -1
	a.off = a.way
	s.turn(a, to)
	s.touch(slot)
	if to == wayDying {
		s.watch(slot)
		s.tellAttempt(EventTaskDying, a)
		return
	}
	s.tellAttempt(EventTaskWithdrawn, a)
}

// unshelve gives an attempt back to its site, as it was.
func (s *State) unshelve(slot uint64) {
	a := s.attempts.mut(slot, s.epoch)
	s.touch(slot)
	switch a.way {
	case wayDying:
		s.unwatch(slot)
		s.turn(a, a.off)
	case wayAway:
		s.turn(a, a.off)
	case wayAssigned, wayRunning, wayStopping:
	}
}

// expire settles, as losses, the attempts whose bounds have passed, in the order
// of bounds, jobs and tasks; those that are too many for one entry in the next.
func (s *State) expire() {
	for s.expiring() && !s.steps.spent() {
		s.drop(s.dying[0], Lost)
	}
}

// Dying is how many lost attempts may live until their bounds; their tasks wait
// for that.
func (s *State) Dying() int { return len(s.dying) }

// watch enters an attempt on wayDying into the heap.
func (s *State) watch(slot uint64) { heap.Push((*reaper)(s), slot) }

// unwatch takes it out.
func (s *State) unwatch(slot uint64) { heap.Remove((*reaper)(s), int(s.attempts.get(slot).rank)) }

// reaper is State.dying as a heap by (bound, job, task), so that an entry looks
// at the first bound only.
type reaper State

var _ heap.Interface = (*reaper)(nil)

// Len implements heap.Interface.
func (r *reaper) Len() int { return len(r.dying) }

// Less implements heap.Interface; no two are equal.
func (r *reaper) Less(i, k int) bool {
	a, b := r.attempts.get(r.dying[i]), r.attempts.get(r.dying[k])
	if a.boundMs != b.boundMs {
		return a.boundMs < b.boundMs
	}
	if a.seq != b.seq {
		return a.seq < b.seq
	}
	return a.task < b.task
}

// Swap implements heap.Interface.
func (r *reaper) Swap(i, k int) {
	r.dying[i], r.dying[k] = r.dying[k], r.dying[i]
	r.place(i)
	r.place(k)
}

// Push implements heap.Interface.
func (r *reaper) Push(slot any) {
	r.dying = append(r.dying, slot.(uint64))
	r.place(len(r.dying) - 1)
}

// Pop implements heap.Interface.
func (r *reaper) Pop() any {
	last := len(r.dying) - 1
	slot := r.dying[last]
	r.dying = r.dying[:last]
	return slot
}

func (r *reaper) place(i int) { r.attempts.mut(r.dying[i], r.epoch).rank = int32(i) }
