package fsm

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/cloudshare/cloudshare/sched"
)

// due is when a live attempt will have run for as long as is thought. Its entry
// stays when the attempt is gone, and is dropped when it is met, or with others
// once they are more than those that count: so an end costs nothing here.
type due struct {
	at      int64 // quanta
	slot    uint64
	seq     uint64
	task    uint32
	attempt uint32
}

// dues is a heap by (time, job, task).
type dues []due

var _ heap.Interface = (*dues)(nil)

// expect enters a live attempt with the length that it is thought to run.
func (s *State) expect(slot uint64, length int64) {
	a := s.attempts.mut(slot, s.epoch)
	a.length = length
	heap.Push(&s.waits.due, s.dueOf(slot, a))
	if w := s.waits; len(w.due) > 2*s.attempts.n+64 {
		w.due = slices.DeleteFunc(w.due, func(d due) bool { return !s.isDue(d) })
		heap.Init(&w.due)
	}
}

// dueOf is the entry of an attempt. Before the policy began nothing counts.
func (s *State) dueOf(slot uint64, a *attempt) due {
	at := max(s.quanta(a.assignedMs), s.waits.since) + a.length
	return due{at: at, slot: slot, seq: a.seq, task: a.task, attempt: a.attempt}
}

// isDue reports whether an entry counts still.
func (s *State) isDue(d due) bool {
	a := s.attempts.get(d.slot)
	return a != nil && s.dueOf(d.slot, a) == d
}

// prolong has attempts that outlive their lengths be thought to run twice as
// long: their cores stay taken in the virtual queues.
func (s *State) prolong() {
	w, now := s.waits, s.quanta(s.time)
	for len(w.due) > 0 && w.due[0].at < now {
		if !s.isDue(w.due[0]) {
			heap.Pop(&w.due)
			continue
		}
		slot := w.due[0].slot
		a := s.attempts.mut(slot, s.epoch)
		j := s.jobs.get(a.seq)
		s.note(s.sites[j.owner]).Longer.Add(widthOf(j.class.need), a.length, 0)
		a.length = min(2*a.length, 2*sched.MaxNow)
		w.due[0] = s.dueOf(slot, a)
		heap.Fix(&w.due, 0)
	}
}

// Len implements heap.Interface.
func (h dues) Len() int { return len(h) }

// Less implements heap.Interface; no two that count are equal.
func (h dues) Less(i, k int) bool {
	a, b := &h[i], &h[k]
	if a.at != b.at {
		return a.at < b.at
	}
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.task, b.task)) < 0
}

// Swap implements heap.Interface.
func (h dues) Swap(i, k int) { h[i], h[k] = h[k], h[i] }

// Push implements heap.Interface.
func (h *dues) Push(d any) { *h = append(*h, d.(due)) }

// Pop implements heap.Interface.
func (h *dues) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	*h = (*h)[:last]
	return d
}
