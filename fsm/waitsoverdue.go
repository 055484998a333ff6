package fsm

import (
	"cmp"

	"github.com/cloudshare/cloudshare/fsm/internal/store"
	"github.com/cloudshare/cloudshare/sched"
)

// due is when a live attempt will have run for its expected length. Its entry stays when the attempt is gone.
// It is dropped when it becomes due, or when an assignment reaches it; each assignment examines two. So an
// attempt's end costs nothing here, and there are at most about twice as many entries as attempts.
type due struct {
	at      int64 // quanta
	slot    uint64
	seq     uint64
	task    uint32
	attempt uint32
}

// expect adds a live attempt with its expected length.
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

// dueOf returns the entry of an attempt. Time before the policy began does not count.
func (s *ranking) dueOf(slot uint64, a *attempt) due {
	at := max(s.quanta(a.assignedMs), s.waits.since) + a.length
	return due{at: at, slot: slot, seq: a.seq, task: a.task, attempt: a.attempt}
}

// isDue reports whether an entry still counts.
func (s *attemptTable) isDue(d due) bool {
	a := s.attempts.Get(d.slot)
	return a != nil && a.phase != phaseLeft && s.dueOf(d.slot, a) == d
}

// prolong doubles the expected length of attempts that outlive it: their cores stay taken in the virtual
// queues. What is too much for one entry is left to the next (prolonging).
func (s *State) prolong() {
	w, now := s.waits, s.quanta(s.time)
	s.prolonging = false
	for first := true; w.due.Len() > 0 && w.due.First().at < now; {
		if !s.isDue(*w.due.First()) { // counts no step: when it becomes due depends on the list
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
		s.changeOf(s.sites[j.owner]).Longer.Add(widthOf(j.class.Need), a.length, 0)
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
