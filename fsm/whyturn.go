package fsm

import (
	"slices"
	"sort"
	"strings"

	"github.com/cloudshare/cloudshare/sched"
)

// Reads do not change the state, so nothing here uses the heaps and the ranks
// that match keeps in it.

// reach is where tasks of a shape could run on some day: per site the greatest
// of its machines' offers, per kind of task.
type reach struct {
	bySite map[string]*spot
	spots  []*spot
	most   [2]Resources
}

// spot is one site's part: [1] of machines that run images, [0] of those that
// run commands.
type spot struct {
	site *site
	most [2]Resources
}

func kindOf(image bool) int {
	if image {
		return 1
	}
	return 0
}

func (s *State) reachOf(h *shape) reach {
	r := reach{bySite: map[string]*spot{}}
	for _, x := range s.order {
		if x.state != Alive || !h.allows(x.name) {
			continue
		}
		var p *spot
		for _, m := range x.machines {
			if !m.offered || !h.fits(m, m.whole) {
				continue
			}
			if p == nil {
				p = &spot{site: x}
				r.bySite[x.name], r.spots = p, append(r.spots, p)
			}
			for _, image := range [...]bool{false, true} {
				if m.runs.Takes(image) {
					k := kindOf(image)
					p.most[k] = p.most[k].greater(m.whole)
					r.most[k] = r.most[k].greater(m.whole)
				}
			}
		}
	}
	return r
}

// meets reports whether tasks of another shape could want a machine here.
func (r *reach) meets(h *shape) bool {
	k := kindOf(h.image)
	if !h.need.fits(r.most[k]) {
		return false
	}
	if len(h.only) > 0 {
		return slices.ContainsFunc(h.only, func(name string) bool {
			p := r.bySite[name]
			return p != nil && h.need.fits(p.most[k]) && h.allows(name)
		})
	}
	return slices.ContainsFunc(r.spots, func(p *spot) bool { return h.need.fits(p.most[k]) && h.allows(p.site.name) })
}

// competing reports whether a class's tasks could take the job's machine.
func (q *inquiry) competing(c *class) bool {
	yes, known := q.competes[c]
	if !known {
		yes = q.isShape(&c.shape) || q.reach.meets(&c.shape)
		q.competes[c] = yes
	}
	return yes
}

func (q *inquiry) isShape(h *shape) bool {
	return h == q.shape || h.need == q.shape.need && h.image == q.shape.image &&
		slices.Equal(h.only, q.shape.only) && slices.Equal(h.not, q.shape.not)
}

// turn is one site's place in the order, by its competing lanes.
type turn struct {
	site    *site
	rank    sched.Rank
	heads   []head
	first   head // the oldest of them
	equalTo int  // the turns from here up to that one have one rank
	waiting uint64
	cpu     int64
}

// head is a lane's first task, or the job that is only asked about.
type head struct {
	lane  *lane // nil: that job
	shape *shape
	ms    int64
	seq   uint64
	// hidden: that job goes before the lane's tasks, so in the order of sites
	// it stands for the lane (or the lane for it).
	hidden bool
}

func (a head) older(b head) bool {
	if a.ms != b.ms {
		return a.ms < b.ms
	}
	return a.seq < b.seq
}

func (t *turn) oldest() head {
	best := t.heads[0]
	for _, h := range t.heads[1:] {
		if best.hidden || !h.hidden && h.older(best) {
			best = h
		}
	}
	return best
}

// rankSites orders the present sites with competing tasks as match would.
func (q *inquiry) rankSites() {
	now := q.s.quanta(q.s.time)
	for _, x := range q.s.sites {
		if !x.present() || x.waiting == 0 && x != q.owner {
			continue
		}
		t := turn{site: x}
		for _, l := range x.lanes {
			if q.competing(l.class) {
				t.heads = append(t.heads, head{lane: l, shape: &l.class.shape, ms: l.queuedMs, seq: l.seq})
				t.waiting += l.waiting
				t.cpu += int64(l.waiting) * l.class.need.MilliCPU
			}
		}
		if x == q.owner && q.job == nil {
			q.addAsked(&t)
		}
		if len(t.heads) > 0 {
			t.first, t.rank = t.oldest(), q.s.policy.Rank(&x.account, now)
			q.turns = append(q.turns, t)
		}
	}
	slices.SortFunc(q.turns, func(a, b turn) int {
		switch c := b.rank.Compare(a.rank); {
		case c != 0:
			return c
		case a.first.older(b.first):
			return -1
		case b.first.older(a.first):
			return 1
		}
		return strings.Compare(a.site.name, b.site.name)
	})
	for i := len(q.turns) - 1; i >= 0; i-- {
		t := &q.turns[i]
		t.equalTo = i + 1
		if i+1 < len(q.turns) && q.turns[i+1].rank.Compare(t.rank) == 0 {
			t.equalTo = q.turns[i+1].equalTo
		}
		q.places[t.site] = i
	}
}

// addAsked enters the job that is only asked about. It would stand in the lane
// of its shape, and be its head if its priority is the greatest there.
func (q *inquiry) addAsked(t *turn) {
	asked := head{shape: q.shape, ms: q.s.time, seq: q.seq}
	for i := range t.heads {
		if h := &t.heads[i]; q.isShape(h.shape) {
			first := q.priority > h.lane.queues[0].priority
			h.hidden, asked.hidden = first, !first
		}
	}
	t.heads = append(t.heads, asked)
}

// firstAt returns the job that match would give to a machine with such room,
// 0 = none.
func (q *inquiry) firstAt(m *machine, room Resources) uint64 {
	if m.held != 0 {
		if _, ok := q.firstOf(q.headOf(m.held), m, room); ok {
			return m.held
		}
		return 0
	}
	for i := 0; i < len(q.turns); {
		end := q.turns[i].equalTo
		if t := q.amongEqual(q.turns[i:end], m, room); t != nil {
			return q.pickOf(t, m, room)
		}
		i = end
	}
	return 0
}

// headOf makes a head of a job that waits.
func (q *inquiry) headOf(seq uint64) head {
	j := q.s.jobs.get(seq)
	return head{lane: q.s.sites[j.owner].findLane(j.class), shape: &j.class.shape, seq: seq}
}

// amongEqual returns the site to serve among those of one rank, which stand in
// the order of their oldest heads: the machine's own, else the one with the
// oldest head that fits; nil if nothing fits.
func (q *inquiry) amongEqual(equal []turn, m *machine, room Resources) *turn {
	if i, ok := q.places[m.site]; ok && q.turns[i].equalTo == equal[0].equalTo {
		if _, fits := q.oldestAt(&q.turns[i], m, room); fits {
			return &q.turns[i]
		}
	}
	var best *turn
	var oldest head
	for i := range equal {
		t := &equal[i]
		if best != nil && oldest.older(t.first) {
			break
		}
		h, fits := q.oldestAt(t, m, room)
		if fits && (best == nil || h.older(oldest) || !oldest.older(h) && t.site.name < best.site.name) {
			best, oldest = t, h
		}
	}
	return best
}

// oldestAt returns a site's oldest head with a task for the machine.
func (q *inquiry) oldestAt(t *turn, m *machine, room Resources) (oldest head, fits bool) {
	for _, h := range t.heads {
		if fits && oldest.older(h) || h.hidden && q.covered(t, h, m, room) {
			continue
		}
		if _, ok := q.firstOf(h, m, room); ok {
			oldest, fits = h, true
		}
	}
	return oldest, fits
}

// covered reports whether the head in whose lane a hidden one stands fits, too.
func (q *inquiry) covered(t *turn, hidden head, m *machine, room Resources) bool {
	return slices.ContainsFunc(t.heads, func(h head) bool {
		_, ok := q.firstOf(h, m, room)
		return ok && !h.hidden && q.isShape(h.shape) && q.isShape(hidden.shape)
	})
}

// pickOf returns a site's job for the machine: priority, then arrival.
func (q *inquiry) pickOf(t *turn, m *machine, room Resources) (best uint64) {
	for _, h := range t.heads {
		seq, ok := q.firstOf(h, m, room)
		if ok && (best == 0 || q.sooner(seq, best)) {
			best = seq
		}
	}
	return best
}

// firstOf returns a lane's first job for the machine, if there is one.
func (q *inquiry) firstOf(h head, m *machine, room Resources) (uint64, bool) {
	if !h.shape.suits(m, room) {
		return 0, false
	}
	if h.lane == nil {
		return h.seq, true
	}
	if m.held != 0 {
		_, _, ok := q.s.next(q.s.jobs.get(h.seq), m.site)
		return h.seq, ok
	}
	c, ok := q.s.first(h.lane, m.site)
	return c.seq, ok
}

func (q *inquiry) sooner(a, b uint64) bool {
	if p, r := q.priorityOf(a), q.priorityOf(b); p != r {
		return p > r
	}
	return a < b
}

func (q *inquiry) priorityOf(seq uint64) int32 {
	if q.job == nil && seq == q.seq {
		return q.priority
	}
	return q.s.jobs.get(seq).priority
}

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
