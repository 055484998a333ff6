package fsm

import (
	"cmp"

	"github.com/cloudshare/cloudshare/sched"
)

// due is when a live attempt will have run for as long as is thought. Its entry
// stays when the attempt is gone, and is dropped when it is met, or when an assignment
// comes to it, each of which looks at two: so an end costs nothing here, and there are
// at most about twice as many entries as attempts.
type due struct {
	at      int64 // quanta
	slot    uint64
	seq     uint64
	task    uint32
	attempt uint32
}

// dues is a heap by (time, job, task). It is not container/heap, which would put
// each entry on Go's heap.
type dues []due

// expect enters a live attempt with the length that it is thought to run.
func (s *State) expect(slot uint64, length int64) {
	a := s.attempts.Mut(slot, s.epoch)
	a.length = length
	w := s.waits
	w.due.push(s.dueOf(slot, a))
	for range 2 {
		if w.sweep++; w.sweep >= len(w.due) {
			w.sweep = 0
		}
		if !s.isDue(w.due[w.sweep]) {
			w.due.remove(w.sweep)
		}
	}
}

// dueOf is the entry of an attempt. Before the policy began nothing counts.
func (s *State) dueOf(slot uint64, a *attempt) due {
	at := max(s.quanta(a.assignedMs), s.waits.since) + a.length
	return due{at: at, slot: slot, seq: a.seq, task: a.task, attempt: a.attempt}
}

// isDue reports whether an entry counts still.
func (s *State) isDue(d due) bool {
	a := s.attempts.Get(d.slot)
	return a != nil && a.way != wayLeft && s.dueOf(d.slot, a) == d
}

// prolong has attempts that outlive their lengths be thought to run twice as
// long: their cores stay taken in the virtual queues. What is too much for one entry
// is left to the next (prolonging).
func (s *State) prolong() {
	w, now := s.waits, s.quanta(s.time)
	s.prolonging = false
	for first := true; len(w.due) > 0 && w.due[0].at < now; {
		if !s.isDue(w.due[0]) { // costs no step: when it is met depends on the list
			w.due.pop()
			continue
		}
		if !first && s.steps.spent() {
			s.prolonging = true
			return
		}
		first = false
		s.steps.used += stepProlong
		slot := w.due[0].slot
		a := s.attempts.Mut(slot, s.epoch)
		j := s.jobs.Get(a.seq)
		s.note(s.sites[j.owner]).Longer.Add(widthOf(j.class.need), a.length, 0)
		a.length = min(2*a.length, 2*sched.MaxNow)
		w.due[0] = s.dueOf(slot, a)
		w.due.sink(0)
	}
}

func (h *dues) push(d due) {
	*h = append(*h, d)
	h.lift(len(*h) - 1)
}

// pop drops the first.
func (h *dues) pop() { h.remove(0) }

// remove drops the i-th.
func (h *dues) remove(i int) {
	last := len(*h) - 1
	h.swap(i, last)
	*h = (*h)[:last]
	if i < last {
		h.sink(i)
		h.lift(i)
	}
}

// lift moves an entry up to where it belongs.
func (h *dues) lift(i int) {
	for ; i > 0 && h.before(i, (i-1)/2); i = (i - 1) / 2 {
		h.swap(i, (i-1)/2)
	}
}

// sink moves an entry down to where it belongs.
func (h *dues) sink(i int) {
	for {
		k := 2*i + 1
		if k+1 < len(*h) && h.before(k+1, k) {
			k++
		}
		if k >= len(*h) || !h.before(k, i) {
			return
		}
		h.swap(i, k)
		i = k
	}
}

// before orders entries; no two that count are equal.
func (h *dues) before(i, k int) bool {
	a, b := &(*h)[i], &(*h)[k]
	if a.at != b.at {
		return a.at < b.at
	}
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.task, b.task)) < 0
}

func (h *dues) swap(i, k int) { (*h)[i], (*h)[k] = (*h)[k], (*h)[i] }
