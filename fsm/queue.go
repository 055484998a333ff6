package fsm

import (
	"cmp"
	"slices"
)

// lane is what one site has waiting of one class: a queue per priority. It
// exists while a task waits in it.
type lane struct {
	owner   *site
	class   *class
	queues  []*queue // by priority, greatest first
	waiting uint64   // tasks
	heapAt  int      // position in class.lanes, −1 while its owner is away
	// The head: the first task of the highest priority.
	seq      uint64
	queuedMs int64
}

// queue is jobs of equal owner, class and priority in order of arrival. An
// entry counts only while its job has waiting tasks; others are dropped when
// they are met, so that cancelling costs nothing here.
type queue struct {
	priority int32
	fresh    []uint64 // seqs in order of submission; [at:] count
	at       int
	back     []uint64 // seqs that returned, sorted
	jobs     int      // entries that count; Invariant: > 0
	gates    []gate   // by site: of each with a bar that holds against a job that waits here
}

// compact drops dead entries once they outnumber the others: a head that nobody
// can run would keep them for ever.
func (q *queue) compact(s *State) {
	if len(q.fresh)-q.at+len(q.back) <= 2*q.jobs+s.bounds.slack {
		return
	}
	q.fresh, q.at, q.back = q.waiting(s), 0, nil
}

// first returns the first job with waiting tasks, 0 if there is none, without
// changing anything; fresh and back say how many dead entries precede it.
func (q *queue) first(s *State) (seq uint64, fresh, back int) {
	fresh = q.at
	for fresh < len(q.fresh) && !s.isWaiting(q.fresh[fresh]) {
		fresh++
	}
	for back < len(q.back) && !s.isWaiting(q.back[back]) {
		back++
	}
	switch {
	case fresh == len(q.fresh) && back == len(q.back):
		return 0, fresh, back
	case back == len(q.back):
		return q.fresh[fresh], fresh, back
	case fresh == len(q.fresh):
		return q.back[back], fresh, back
	}
	return min(q.fresh[fresh], q.back[back]), fresh, back
}

// trim drops the dead entries that first stepped over.
func (q *queue) trim(fresh, back int) {
	q.back = q.back[back:]
	if q.at = fresh; q.at > len(q.fresh)/2 {
		q.fresh = append(q.fresh[:0:0], q.fresh[q.at:]...)
		q.at = 0
	}
}

// insertBack enters a job that returned.
func (q *queue) insertBack(seq uint64) {
	if i, ok := slices.BinarySearch(q.back, seq); !ok {
		q.back = slices.Insert(q.back, i, seq)
	}
}

// waiting returns the seqs of jobs with waiting tasks, in order.
func (q *queue) waiting(s *State) (seqs []uint64) {
	for _, list := range [...][]uint64{q.fresh[q.at:], q.back} {
		for _, seq := range list {
			if s.isWaiting(seq) {
				seqs = append(seqs, seq)
			}
		}
	}
	slices.Sort(seqs)
	return slices.Compact(seqs) // a dead entry may have a living twin
}

func (s *State) isWaiting(seq uint64) bool {
	j := s.jobs.get(seq)
	return j != nil && j.waiting() > 0
}

// head returns the queue time of the job's next task.
func (j *job) headMs() int64 {
	if j.tasks != nil && j.tasks.back.n > 0 {
		return j.tasks.back.first().queuedMs
	}
	return j.queuedMs
}

// refresh finds the lane's head again after its queues changed.
func (l *lane) refresh(s *State) {
	if len(l.queues) == 0 {
		l.seq, l.queuedMs = 0, 0
		return
	}
	q := l.queues[0]
	seq, fresh, back := q.first(s)
	q.trim(fresh, back)
	l.seq, l.queuedMs = seq, s.jobs.get(seq).headMs()
}

// queue returns the lane's queue of a priority.
func (l *lane) queue(priority int32) *queue {
	i, ok := slices.BinarySearchFunc(l.queues, priority, func(q *queue, p int32) int {
		return cmp.Compare(p, q.priority)
	})
	if !ok {
		l.queues = slices.Insert(l.queues, i, &queue{priority: priority})
	}
	return l.queues[i]
}

// findLane returns the owner's lane of a class, or nil.
func (x *site) findLane(c *class) *lane {
	for _, l := range x.lanes {
		if l.class == c {
			return l
		}
	}
	return nil
}

// enqueue counts n more waiting tasks of a job whose record already has them, and
// wakes the machines that rest only because all that they fit was barred from them.
func (s *State) enqueue(seq uint64, j *job, n uint32) {
	var blocked []*site
	if j.waiting() == n && s.sites[j.owner].present() {
		blocked = s.blocked(j.class, seq)
	}
	s.addWaiting(seq, j, n)
	for _, x := range blocked {
		if !j.isBarred(x) {
			s.rouseFor(x, j.class)
		}
	}
}

// addWaiting is enqueue where nothing is to be woken: while a state is restored.
func (s *State) addWaiting(seq uint64, j *job, n uint32) {
	x := s.sites[j.owner]
	l := x.findLane(j.class)
	if l == nil {
		l = &lane{owner: x, class: j.class, heapAt: -1}
		x.lanes = append(x.lanes, l)
	}
	if j.waiting() == n { // it had none before: no entry, or a dead one
		q := l.queue(j.priority)
		q.jobs++
		if last := len(q.fresh) - 1; last < q.at || q.fresh[last] < seq {
			q.fresh = append(q.fresh, seq)
		} else {
			q.insertBack(seq)
		}
		q.admit(s, seq, j)
		if j.hasBars() {
			j.class.barred++
		}
	}
	l.waiting += uint64(n)
	x.waiting += uint64(n)
	x.cpu += int64(n) * j.class.need.MilliCPU
	s.waiting += uint64(n)
	l.refresh(s)
	if x.present() {
		s.attract(l, uint64(n))
	}
}

// attract adds a lane's n tasks to what is matched.
func (s *State) attract(l *lane, n uint64) {
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

// dequeue counts n tasks less of a job whose record no longer has them.
func (s *State) dequeue(j *job, n uint32) {
	x := s.sites[j.owner]
	l := x.findLane(j.class)
	l.waiting -= uint64(n)
	x.waiting -= uint64(n)
	x.cpu -= int64(n) * j.class.need.MilliCPU
	s.waiting -= uint64(n)
	if j.waiting() == 0 {
		l.leave(s, j)
	}
	l.refresh(s)
	if x.present() {
		s.repel(l, uint64(n))
	}
	if l.waiting == 0 {
		i := slices.Index(x.lanes, l)
		x.lanes = slices.Delete(x.lanes, i, i+1)
	}
}

// leave takes a job that waits no more out of its queue, which goes with its last.
func (l *lane) leave(s *State, j *job) {
	q := l.queue(j.priority)
	if j.hasBars() {
		j.class.barred--
	}
	if q.jobs--; q.jobs == 0 {
		l.queues = slices.DeleteFunc(l.queues, func(o *queue) bool { return o == q })
		return
	}
	q.compact(s)
}

// repel takes n of a lane's tasks out of what is matched.
func (s *State) repel(l *lane, n uint64) {
	c := l.class
	c.waiting -= n
	s.present -= n
	if l.waiting == 0 || !l.owner.present() {
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

// park takes all that a site has waiting out of matching; its queues stay, so
// the cost does not grow with them.
//
// REQUIRES: x.present() is false already.
func (s *State) park(x *site) {
	for _, l := range x.lanes {
		s.repel(l, l.waiting)
	}
	s.noteAway(x)
}

// unpark is park's inverse.
//
// REQUIRES: x.present() is true already, and was false.
func (s *State) unpark(x *site) {
	for _, l := range x.lanes {
		blocked := s.blocked(l.class, 0)
		s.attract(l, l.waiting)
		for _, y := range blocked {
			s.rouseFor(y, l.class)
		}
	}
	s.noteBack(x)
}
