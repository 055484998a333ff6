package fsm

// whyWalk is roughly the greatest number of queue entries that one question examines.
const whyWalk = 4096

// aheadIn counts a lane's tasks that go before a job with that order and arrival. With more than most
// entries it takes an even sample; then exact is false.
func (s *views) aheadIn(l *lane, order int32, seq uint64, most int) (tasks uint64, exact bool) {
	at := l.seekQueue(order)
	last := l.queues.Get(at)
	if last == nil {
		return l.waiting, true
	}
	before := l.queues.Rank(at)
	step := stepFor(before, most)
	each := max(1, most/(before/step+1))
	exact = step == 1
	looked := uint64(0)
	for q := range l.queues.Sample(before, step) {
		n, all := s.aheadInQueue(*q, s.nextSeq, each)
		tasks, exact, looked = tasks+n, exact && all, looked+1
	}
	if step > 1 {
		tasks = tasks * uint64(before) / looked
	}
	if q := *last; q.order == order {
		n, all := s.aheadInQueue(q, seq, each)
		tasks, exact = tasks+n, exact && all
	}
	return min(tasks, l.waiting), exact
}

// aheadInQueue counts the waiting tasks of a queue's jobs that arrived before seq.
func (s *views) aheadInQueue(q *queue, seq uint64, most int) (tasks uint64, exact bool) {
	n := q.seqs.Rank(q.seqs.Search(func(o *uint64) bool { return *o >= seq }))
	step := stepFor(n, most)
	looked := uint64(0)
	for o := range q.seqs.Sample(n, step) {
		looked++
		tasks += uint64(s.jobs.Get(*o).waiting())
	}
	if step > 1 {
		tasks = tasks * uint64(n) / looked
	}
	return tasks, step == 1
}

// stepFor returns the step with which about most of n are examined, no more.
func stepFor(n, most int) int { return max(1, (n+most-1)/most) }
