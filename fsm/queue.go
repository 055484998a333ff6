package fsm

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// lane is the waiting tasks of one site and one class: a queue per order. It exists while a task waits
// in it.
type lane struct {
	owner   *site
	class   *class
	queues  store.Sorted[*queue] // by order, greatest first; as many as jobs, if each job has its own
	depths  []depth              // by site: one for each that has searched past a queue
	waiting uint64               // tasks
	jobs    int                  // that wait
	// barredFrom counts the waiting jobs that are barred from a site.
	barredFrom barCounts
	heapAt     int // position in class.lanes, −1 while its owner is not counted
	// seq and queuedMs are the head's: the first task of the greatest order.
	seq      uint64
	queuedMs int64
}

// queue is the waiting jobs of the same owner, class and order as they arrived.
type queue struct {
	order int32
	seqs  store.Sorted[uint64] // of the waiting jobs. Invariant: not empty
	gates []gate               // by site: one for each with a valid bar against a job that waits here
}

// dropSeq removes a job's number from a list that has it.
func dropSeq(l *store.Sorted[uint64], seq uint64) {
	l.Remove(l.Search(func(o *uint64) bool { return *o >= seq }))
}

func (s *jobTable) isWaiting(seq uint64) bool {
	j := s.jobs.Get(seq)
	return j != nil && j.waiting() > 0
}

// headMs returns the queue time of the job's next task.
func (j *job) headMs() int64 {
	if b := j.tasks.back().First(); b != nil {
		return b.queuedMs
	}
	if v := j.tasks.released().First(); v != nil {
		return v.queuedMs
	}
	return j.queuedMs
}

// refresh finds the lane's head after its queues changed.
func (l *lane) refresh(s *jobTable) {
	if l.queues.Len() == 0 {
		l.seq, l.queuedMs = 0, 0
		return
	}
	l.seq = *l.top().seqs.First()
	l.queuedMs = s.jobs.Get(l.seq).headMs()
}

// queue returns the lane's queue of an order, and creates it if there is none.
func (l *lane) queue(order int32) *queue {
	at := l.seekQueue(order)
	q := l.findQueue(at, order)
	if q == nil {
		q = &queue{order: order}
		l.queues.Insert(at, q)
	}
	return q
}

// findQueue returns the queue of an order, nil if there is none. REQUIRES: at is its seekQueue.
func (l *lane) findQueue(at store.Place, order int32) *queue {
	if q := l.queues.Get(at); q != nil && (*q).order == order {
		return *q
	}
	return nil
}

// seekQueue returns the place of the first queue whose order is not greater.
func (l *lane) seekQueue(order int32) store.Place {
	return l.queues.Search(func(q **queue) bool { return (*q).order <= order })
}

// top returns the queue of the greatest order.
//
// REQUIRES: something waits in the lane.
func (l *lane) top() *queue { return *l.queues.First() }

// findLane returns the owner's lane of a class, or nil.
func (x *site) findLane(c *class) *lane {
	for _, l := range x.lanes {
		if l.class == c {
			return l
		}
	}
	return nil
}

// enqueue counts n more waiting tasks of a job, whose record already has them. It wakes the machines that
// rest only because everything that they fit was barred from them.
func (s *matching) enqueue(seq uint64, j *job, n uint32) {
	var blocked []*site
	if j.waiting() == n && s.sites[j.owner].counted {
		blocked = s.blocked(j.class, j.tasks.bars())
	}
	s.addWaiting(seq, j, n)
	for _, x := range blocked {
		s.wakeMachinesFor(x, j.class)
	}
}

// addWaiting is enqueue without waking anything, for restoring a state.
func (s *matching) addWaiting(seq uint64, j *job, n uint32) {
	x := s.sites[j.owner]
	l := x.findLane(j.class)
	if l == nil {
		l = &lane{owner: x, class: j.class, heapAt: -1}
		x.lanes = append(x.lanes, l)
	}
	if j.waiting() == n { // it had none before
		l.enter(&s.jobTable, seq, j)
		s.countJob(l, j.tasks.bars(), 1)
	}
	l.waiting += uint64(n)
	x.waiting += uint64(n)
	x.cpu += int64(n) * j.class.Need.MilliCPU
	s.waiting += uint64(n)
	l.refresh(&s.jobTable)
	if x.counted {
		s.activateLane(l, uint64(n))
	}
}

// activateLane adds a lane's n tasks to what is matched.
func (s *matching) activateLane(l *lane, n uint64) {
	c := l.class
	if l.heapAt < 0 {
		l.heapAt = len(c.lanes)
		c.lanes = append(c.lanes, l)
	}
	if c.waiting == 0 {
		c.activeAt = len(s.active)
		s.active = append(s.active, c)
		if s.phase == cut { // some machines have been tried without it
			s.setFresh(c, isLate)
		} else {
			s.setFresh(c, isFresh)
		}
	}
	c.waiting += n
	s.present += n
}

// dequeue counts n fewer waiting tasks of a job, whose record no longer has them.
func (s *matching) dequeue(seq uint64, j *job, n uint32) {
	x := s.sites[j.owner]
	l := x.findLane(j.class)
	l.waiting -= uint64(n)
	x.waiting -= uint64(n)
	x.cpu -= int64(n) * j.class.Need.MilliCPU
	s.waiting -= uint64(n)
	if j.waiting() == 0 {
		l.leave(seq, j)
		s.countJob(l, j.tasks.bars(), -1)
	}
	l.refresh(&s.jobTable)
	if x.counted {
		s.deactivateLane(l, uint64(n))
	}
	if l.waiting == 0 {
		i := slices.Index(x.lanes, l)
		x.lanes = slices.Delete(x.lanes, i, i+1)
	}
}

// enter puts a job into the queue of its order.
func (l *lane) enter(s *jobTable, seq uint64, j *job) {
	q := l.queue(j.order)
	q.seqs.Insert(q.seqs.Search(func(o *uint64) bool { return *o > seq }), seq)
	q.admit(s, seq, j)
	l.admit(s, j)
}

// leave removes a job that no longer waits from its queue, and the queue if it was the last.
func (l *lane) leave(seq uint64, j *job) {
	q := l.queue(j.order)
	if dropSeq(&q.seqs, seq); q.seqs.Len() == 0 {
		l.queues.Remove(l.seekQueue(j.order))
	}
}

// deactivateLane removes n of a lane's tasks from what is matched.
func (s *matching) deactivateLane(l *lane, n uint64) {
	c := l.class
	c.waiting -= n
	s.present -= n
	if l.waiting == 0 || !l.owner.counted {
		s.leaveHeap(l)
	} else if c.heapAt == s.index {
		s.fixHeap(c, l.heapAt)
	}
	if c.waiting == 0 {
		last := s.active[len(s.active)-1]
		s.active[c.activeAt], last.activeAt = last, c.activeAt
		s.active = s.active[:len(s.active)-1]
		c.activeAt, c.verdicts = -1, nil
		s.setFresh(c, notFresh)
	}
}

// park removes everything that a site has waiting from matching. Its queues stay, so the cost does not
// grow with them.
//
// REQUIRES: x.present() is already false.
func (s *matching) park(x *site) {
	if x.counted {
		x.counted = false
		for _, l := range x.lanes {
			s.countLane(l, -1)
			s.deactivateLane(l, l.waiting)
		}
	}
	s.noteAway(x)
}

// unpark is the inverse of park, but what the site has waiting is counted only when the entry's commands are
// done: a site that leaves and returns 8000 times in one entry has its lanes counted once, not 8000 times.
//
// REQUIRES: x.present() is already true, and was false.
func (s *matching) unpark(x *site) {
	s.noteBack(x)
	s.returned = append(s.returned, x)
}

// countReturned counts what the sites have waiting that returned in this entry and are present.
func (s *matching) countReturned() {
	for _, x := range s.returned {
		if x.present() && !x.counted {
			s.countSite(x)
		}
	}
	s.returned = nil
}

// countSite adds everything that a site has waiting to matching, and wakes the machines that rest only
// because everything that they fit was barred from them.
func (s *matching) countSite(x *site) {
	x.counted = true
	for _, l := range x.lanes {
		blocked := s.blocked(l.class, nil)
		s.countLane(l, 1)
		s.activateLane(l, l.waiting)
		for _, y := range blocked {
			s.wakeMachinesFor(y, l.class)
		}
	}
}
