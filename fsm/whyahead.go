package fsm

import (
	"slices"
	"sort"
)

// whyWalk bounds, roughly, the queue entries that one question looks at.
const whyWalk = 4096

// aheadIn counts a lane's tasks that go before a job of that priority and
// arrival. Beyond most entries it takes an even sample; then exact is false.
func (s *State) aheadIn(l *lane, priority int32, seq uint64, most int) (tasks uint64, exact bool) {
	before := sort.Search(len(l.queues), func(i int) bool { return l.queues[i].priority <= priority })
	if before == len(l.queues) {
		return l.waiting, true
	}
	queues := l.queues[:before]
	step := stepFor(len(queues), most)
	each := max(1, most/(len(queues)/step+1))
	exact = step == 1
	looked := uint64(0)
	for i := 0; i < len(queues); i += step {
		n, all := s.aheadInQueue(queues[i], s.nextSeq, each)
		tasks, exact, looked = tasks+n, exact && all, looked+1
	}
	if step > 1 {
		tasks = tasks * uint64(len(queues)) / looked
	}
	if q := l.queues[before]; q.priority == priority {
		n, all := s.aheadInQueue(q, seq, each)
		tasks, exact = tasks+n, exact && all
	}
	return min(tasks, l.waiting), exact
}

// aheadInQueue counts the waiting tasks of a queue's jobs that arrived before.
func (s *State) aheadInQueue(q *queue, seq uint64, most int) (tasks uint64, exact bool) {
	fresh := q.fresh[q.at:]
	upTo, _ := slices.BinarySearch(fresh, seq)
	n, all := s.sampleTasks(fresh[:upTo], nil, most)
	upTo, _ = slices.BinarySearch(q.back, seq)
	m, too := s.sampleTasks(q.back[:upTo], fresh, most)
	return n + m, all && too
}

// sampleTasks counts the waiting tasks of the jobs in a sorted list but not in
// twins: a job whose entry was dead may have come again.
func (s *State) sampleTasks(seqs, twins []uint64, most int) (tasks uint64, exact bool) {
	step := stepFor(len(seqs), most)
	looked := uint64(0)
	for i := 0; i < len(seqs); i += step {
		looked++
		if _, twin := slices.BinarySearch(twins, seqs[i]); twin {
			continue
		}
		if j := s.jobs.get(seqs[i]); j != nil {
			tasks += uint64(j.waiting())
		}
	}
	if step > 1 {
		tasks = tasks * uint64(len(seqs)) / looked
	}
	return tasks, step == 1
}

// stepFor is the step that looks at no more than about most of n.
func stepFor(n, most int) int { return max(1, (n+most-1)/most) }
