package fsm

import (
	"cmp"

	"github.com/cloudshare/cloudshare/fsm/internal/store"
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

// expect enters a live attempt with the length that it is thought to run.
func (s *attemptTable) expect(slot uint64, length int64) {
	a := s.attempts.Mut(slot, s.epoch)
	a.length = length
	w := s.waits
	w.due.Push(s.dueOf(slot, a))
	for range 2 {
		if w.sweep++; w.sweep >= w.due.Len() {
			w.sweep = 0
		}
		if !s.isDue(*w.due.At(w.sweep)) {
			w.due.Remove(w.sweep)
		}
	}
}

// dueOf is the entry of an attempt. Before the policy began nothing counts.
func (s *ranking) dueOf(slot uint64, a *attempt) due {
	at := max(s.quanta(a.assignedMs), s.waits.since) + a.length
	return due{at: at, slot: slot, seq: a.seq, task: a.task, attempt: a.attempt}
}

// isDue reports whether an entry counts still.
func (s *attemptTable) isDue(d due) bool {
	a := s.attempts.Get(d.slot)
	return a != nil && a.phase != phaseLeft && s.dueOf(d.slot, a) == d
}

// prolong has attempts that outlive their lengths be thought to run twice as
// long: their cores stay taken in the virtual queues. What is too much for one entry
// is left to the next (prolonging).
func (s *State) prolong() {
	w, now := s.waits, s.quanta(s.time)
	s.prolonging = false
	for first := true; w.due.Len() > 0 && w.due.First().at < now; {
		if !s.isDue(*w.due.First()) { // costs no step: when it is met depends on the list
			w.due.Pop()
			continue
		}
		if !first && s.steps.spent() {
			s.prolonging = true
			return
		}
		first = false
		s.steps.used += stepProlong
		slot := w.due.First().slot
		a := s.attempts.Mut(slot, s.epoch)
		j := s.jobs.Get(a.seq)
		s.note(s.sites[j.owner]).Longer.Add(widthOf(j.class.Need), a.length, 0)
		a.length = min(2*a.length, 2*sched.MaxNow)
		*w.due.First() = s.dueOf(slot, a)
		w.due.Fix(0)
	}
}

func dueHeap() store.Heap[due] { return store.Heap[due]{Before: (*due).isBefore} }

// isBefore orders entries by time, job and task; no two that count are equal.
func (d *due) isBefore(o *due) bool {
	if d.at != o.at {
		return d.at < o.at
	}
	return cmp.Or(cmp.Compare(d.seq, o.seq), cmp.Compare(d.task, o.task)) < 0
}
