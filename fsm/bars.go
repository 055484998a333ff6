package fsm

import (
	"cmp"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// bar keeps a job from a site that declined one of its tasks, until the site's next offer. It holds for
// the whole job: its tasks are alike, so the site would decline them one after the other.
type bar struct {
	site   int32
	offers uint64 // the site's count at the decline; the bar is void once the count has grown
}

// isBarred reports whether the job is barred from x's current offer.
func (j *job) isBarred(x *site) bool {
	bars := j.tasks.bars()
	if len(bars) == 0 {
		return false
	}
	i, ok := findBar(bars, x.id)
	return ok && bars[i].offers == x.offers
}

// hasBars reports whether any site declined the job, in whatever offer.
func (j *job) hasBars() bool { return len(j.tasks.bars()) > 0 }

// barWalk looks up sites in a job's bars in the order of their ids, in one pass: a queue has as many
// gates as sites declined some of its jobs, and jobs may have as many bars.
type barWalk []bar

// isBarred is job.isBarred. Later calls must not be for a site before x.
func (w *barWalk) isBarred(x *site) bool {
	for len(*w) > 0 && (*w)[0].site < x.id {
		*w = (*w)[1:]
	}
	return len(*w) > 0 && (*w)[0].site == x.id && (*w)[0].offers == x.offers
}

// findBar is a hand-written binary search: a search past declined jobs calls it for each of them.
func findBar(bars []bar, site int32) (int, bool) {
	from, to := 0, len(bars)
	for from < to {
		if i := (from + to) / 2; bars[i].site < site {
			from = i + 1
		} else {
			to = i
		}
	}
	return from, from < len(bars) && bars[from].site == site
}

// bar keeps a job from x until x's next offer. A machine of x that is reserved for the job could no
// longer run it, so the reservation ends.
//
// REQUIRES: j came from State.mutJob.
func (s *holding) bar(seq uint64, j *job, x *site) {
	if j.isBarred(x) {
		return
	}
	t := j.set(s.epoch).rare()
	t.bars = s.withBar(t.bars, x)
	if j.waiting() > 0 {
		l := s.sites[j.owner].findLane(j.class)
		l.queue(j.order).addGate(x)
		s.countBarred(l, []barCount{{x.id, x.offers, 1}})
	}
	if m := s.held[seq]; m != nil && m.site == x {
		s.unhold(seq)
	}
}

// withBar returns a new list of the bars that are still valid and one for x.
func (s *matching) withBar(bars []bar, x *site) []bar {
	out := make([]bar, 0, len(bars)+1)
	for _, b := range bars {
		if b.site != x.id && s.sites[b.site].offers == b.offers {
			out = append(out, b)
		}
	}
	i, _ := findBar(out, x.id)
	return slices.Insert(out, i, bar{x.id, x.offers})
}

// gate records how far one site has searched a queue past jobs that are barred from it, so that no job
// is passed twice. It is derived: without it the search would find the same job, but later.
type gate struct {
	site   int32
	offers uint64 // the site's count; a gate with another count is void
	// Invariant: each waiting job before from is barred from the site, or is in open.
	from uint64
	// open is ordered by number; some of its jobs may have stopped waiting, or be barred by now.
	open store.Sorted[uint64]
}

// advance is how far a search in a queue got with a site's gate.
type advance struct {
	gate   int    // position in queue.gates, −1 = no gate
	passed int    // this many of gate.open
	from   uint64 // the new gate.from
}

func (q *queue) findGate(site int32) (int, bool) {
	return slices.BinarySearchFunc(q.gates, site, func(g gate, id int32) int { return cmp.Compare(g.site, id) })
}

// addGate gives x a gate if it has none.
func (q *queue) addGate(x *site) {
	i, ok := q.findGate(x.id)
	switch {
	case !ok:
		q.gates = slices.Insert(q.gates, i, gate{site: x.id, offers: x.offers})
	case q.gates[i].offers != x.offers:
		q.gates[i] = gate{site: x.id, offers: x.offers}
	}
}

// admit updates the gates for a job that begins to wait.
func (q *queue) admit(s *jobTable, seq uint64, j *job) {
	if len(q.gates) > 0 {
		q.gates = slices.DeleteFunc(q.gates, func(g gate) bool { return g.offers != s.sites[g.site].offers })
	}
	bars := barWalk(j.tasks.bars())
	for i := range q.gates {
		g := &q.gates[i]
		if seq >= g.from || bars.isBarred(s.sites[g.site]) {
			continue
		}
		at := g.open.Search(func(o *uint64) bool { return *o >= seq })
		if o := g.open.Get(at); o == nil || *o != seq {
			g.open.Insert(at, seq)
		}
	}
	at := 0
	for _, b := range j.tasks.bars() {
		x := s.sites[b.site]
		if b.offers != x.offers {
			continue
		}
		for at < len(q.gates) && q.gates[at].site < b.site {
			at++
		}
		if at == len(q.gates) || q.gates[at].site != b.site {
			q.addGate(x)
		}
	}
}

// seek returns the queue's first waiting job that is not barred from x, 0 if there is none, and how far
// x's gate may move. It changes nothing.
func (q *queue) seek(s *jobTable, x *site) (seq uint64, to advance) {
	at, ok := q.findGate(x.id)
	if !ok || q.gates[at].offers != x.offers {
		return *q.seqs.First(), advance{gate: -1}
	}
	g := &q.gates[at]
	to = advance{gate: at, from: g.from}
	for open := range g.open.All() {
		if s.isWaiting(*open) && !s.jobs.Get(*open).isBarred(x) {
			return *open, to
		}
		to.passed++
	}
	if seq = q.after(s, g.from, x); seq != 0 {
		to.from = seq
	} else {
		to.from = s.nextSeq
	}
	return seq, to
}

// move moves a gate as far as seek returned.
func (q *queue) move(to advance) {
	if to.gate < 0 {
		return
	}
	g := &q.gates[to.gate]
	for g.from = to.from; to.passed > 0; to.passed-- {
		g.open.Remove(store.Place{})
	}
}

// after returns the first waiting job, from a sequence number on, that is not barred from x, 0 if there
// is none.
func (q *queue) after(s *jobTable, from uint64, x *site) uint64 {
	for seq := range q.seqs.From(q.seqs.Search(func(o *uint64) bool { return *o >= from })) {
		if !s.jobs.Get(*seq).isBarred(x) {
			return *seq
		}
	}
	return 0
}

// hasFor reports whether the lane has a task that is not barred from site x.
func (l *lane) hasFor(x *site) bool { return l.jobs > l.barredFrom.of(x) }

// first returns the lane's first task that is not barred from site x. It changes nothing.
func (s *jobTable) first(l *lane, x *site) (choice, bool) {
	if l.hasFor(x) {
		for q := range l.queues.From(l.begin(x)) {
			if seq, _ := (*q).seek(s, x); seq != 0 {
				return s.taskOf(l, seq), true
			}
		}
	}
	return choice{}, false
}

// find is first, but moves x's gates, so that the next search begins where this one ended.
func (s *matching) find(l *lane, x *site) (choice, bool) {
	switch l.barredFrom.of(x) {
	case 0:
		return s.taskOf(l, l.seq), true
	case l.jobs:
		return choice{}, false
	}
	s.sought++
	passed := false
	for q := range l.queues.From(l.begin(x)) {
		seq, to := (*q).seek(&s.jobTable, x)
		(*q).move(to)
		if seq != 0 {
			if passed {
				l.deepen(x, *q)
			}
			return s.taskOf(l, seq), true
		}
		passed = true
	}
	return choice{}, false
}

// taskOf returns a waiting job's next task as a choice.
func (s *jobTable) taskOf(l *lane, seq uint64) choice {
	task, back := s.jobs.Get(seq).nextTask()
	return choice{l, seq, task, back}
}

// nextTask returns a waiting job's next task: returned ones first, lowest index first.
func (j *job) nextTask() (task uint32, back bool) {
	if b := j.tasks.back().First(); b != nil {
		return b.task, true
	}
	if v := j.tasks.released().First(); v != nil {
		return v.from, false
	}
	return j.next, false
}

// wakeMachinesFor wakes the resting machines of a site that fit a class.
func (s *matching) wakeMachinesFor(x *site, c *class) {
	for _, m := range x.machines {
		if !m.resting {
			s.steps.used += stepLook
		} else if s.suits(c, m, m.room()) {
			s.wakeMachine(m)
		}
	}
}
