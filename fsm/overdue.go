package fsm

import (
	"container/heap"

	"github.com/cloudshare/cloudshare/sched"
)

// overdue is the live attempts, while a policy by projected waits is in force, as
// a heap by when they will have run for as long as is thought: an entry looks at
// the first.
type overdue State

var _ heap.Interface = (*overdue)(nil)

// expect enters a live attempt with the length that it is thought to run.
func (s *State) expect(slot uint64, length int64) {
	s.attempts.mut(slot, s.epoch).length = length
	heap.Push((*overdue)(s), slot)
}

// prolong has attempts that outlive their lengths be thought to run twice as
// long: their cores stay taken in the virtual queues.
func (s *State) prolong() {
	w, now := s.waits, s.quanta(s.time)
	for len(w.due) > 0 && s.dueOf(s.attempts.get(w.due[0])) < now {
		a := s.attempts.mut(w.due[0], s.epoch)
		j := s.jobs.get(a.seq)
		s.note(s.sites[j.owner]).Longer.Add(widthOf(j.class.need), a.length, 0)
		a.length = min(2*a.length, 2*sched.MaxNow)
		heap.Fix((*overdue)(s), 0)
	}
}

// dueOf is when an attempt has run for its length, in quanta; before the policy
// began nothing counts.
func (s *State) dueOf(a *attempt) int64 { return max(s.quanta(a.assignedMs), s.waits.since) + a.length }

// Len implements heap.Interface.
func (o *overdue) Len() int { return len(o.waits.due) }

// Less implements heap.Interface; no two are equal.
func (o *overdue) Less(i, k int) bool {
	s := (*State)(o)
	a, b := s.attempts.get(s.waits.due[i]), s.attempts.get(s.waits.due[k])
	if p, q := s.dueOf(a), s.dueOf(b); p != q {
		return p < q
	}
	if a.seq != b.seq {
		return a.seq < b.seq
	}
	return a.task < b.task
}

// Swap implements heap.Interface.
func (o *overdue) Swap(i, k int) {
	due := o.waits.due
	due[i], due[k] = due[k], due[i]
	o.place(i)
	o.place(k)
}

// Push implements heap.Interface.
func (o *overdue) Push(slot any) {
	o.waits.due = append(o.waits.due, slot.(uint64))
	o.place(len(o.waits.due) - 1)
}

// Pop implements heap.Interface.
func (o *overdue) Pop() any {
	last := len(o.waits.due) - 1
	slot := o.waits.due[last]
	o.waits.due = o.waits.due[:last]
	return slot
}

func (o *overdue) place(i int) { o.attempts.mut(o.waits.due[i], o.epoch).dueAt = int32(i) }
