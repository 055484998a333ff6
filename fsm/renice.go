package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// renice executes a Renice: what waits of its jobs takes another place among their owner's tasks.
func (s *State) renice(x *site, c *command.Renice) {
	for _, n := range c.Jobs {
		s.reorderAs(x, n.Num, func(priority int32, _ uint32) int32 { return command.Order(priority, n.Nice) })
	}
}

// reorderAs moves a site's job to the queue that f makes of its priority and nice value. One that is unknown or over is
// passed over: it may have ended while the command was on its way.
func (s *State) reorderAs(x *site, num uint64, f func(priority int32, nice uint32) int32) {
	s.steps.used += stepEnd
	if seq := x.nums[num]; seq != 0 && !s.jobs.Get(seq).over() {
		s.reorder(seq, f(command.SplitOrder(s.jobs.Get(seq).order)))
	}
}

// reorder moves a job to the queue of another order, where it has the place of its arrival. Of the order that it has
// already nothing changes, what gates remember least of all: it still waits in that queue.
func (s *matching) reorder(seq uint64, order int32) {
	if s.jobs.Get(seq).order == order {
		return
	}
	j := s.mutJob(seq)
	l := s.sites[j.owner].findLane(j.class)
	if l != nil { // also of one that does not wait now: it may wait again, in another queue
		if q := l.findQueue(l.seekQueue(j.order), j.order); q != nil {
			q.forget(seq)
		}
	}
	if j.waiting() == 0 {
		j.order = order
		return
	}
	l.leave(seq, j)
	j.order = order
	l.enter(&s.jobTable, seq, j)
	l.refresh(&s.jobTable)
	if l.heapAt >= 0 && l.class.heapAt == s.index {
		s.fixHeap(l.class, l.heapAt)
	}
}

// forget takes a job that still waits, but not in this queue, from what its gates remember.
func (q *queue) forget(seq uint64) {
	for i := range q.gates {
		open := &q.gates[i].open
		at := open.Search(func(o *uint64) bool { return *o >= seq })
		if o := open.Get(at); o != nil && *o == seq {
			open.Remove(at)
		}
	}
}
