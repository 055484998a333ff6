package fsm

import (
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// Reads do not change the state, so nothing here uses the heaps and ranks that match keeps in it.

// competing reports whether a class's tasks could take a machine that the job could use.
func (q *inquiry) competing(c *class) bool {
	yes, known := q.competes[c]
	if !known {
		yes = q.isShape(&c.Shape) || q.reach.meets(&c.Shape)
		q.competes[c] = yes
	}
	return yes
}

func (q *inquiry) isShape(h *command.Shape) bool {
	return h == q.shape || h.Need == q.shape.Need && h.Image == q.shape.Image && slices.Equal(h.Only, q.shape.Only) &&
		slices.Equal(h.Not, q.shape.Not) && slices.Equal(h.Selectors, q.shape.Selectors)
}

// turn is one site's place in the order, by its competing lanes.
type turn struct {
	site    *site
	rank    sched.Rank
	heads   []head
	first   head // the oldest of them
	equalTo int  // the turns from this one up to that index have equal ranks
	waiting uint64
	cpu     int64
}

// head is a lane's first task, or the hypothetical job.
type head struct {
	lane  *lane // nil: the hypothetical job
	shape *command.Shape
	ms    int64
	seq   uint64
	// hidden means that another head stands for this one in the order of sites: if the hypothetical job
	// goes before the lane's tasks it stands for the lane, otherwise the lane stands for it.
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
	q.account = q.s.accounts()
	for _, x := range q.s.sites {
		if !x.present() || x.waiting == 0 && x != q.owner {
			continue
		}
		t := turn{site: x}
		for _, l := range x.lanes {
			if q.competing(l.class) {
				t.heads = append(t.heads, head{lane: l, shape: &l.class.Shape, ms: l.queuedMs, seq: l.seq})
				t.waiting += l.waiting
				t.cpu += int64(l.waiting) * l.class.Need.MilliCPU
			}
		}
		if x == q.owner && q.job == nil {
			q.addAsked(&t)
		}
		if len(t.heads) > 0 {
			t.first, t.rank = t.oldest(), q.s.policy.Rank(q.account(x), now)
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

// addAsked adds the hypothetical job. It would be in the lane of its shape, and its head if its order is
// the greatest there.
func (q *inquiry) addAsked(t *turn) {
	asked := head{shape: q.shape, ms: q.s.time, seq: q.seq}
	for i := range t.heads {
		if h := &t.heads[i]; q.isShape(h.shape) {
			first := q.order > h.lane.top().order
			h.hidden, asked.hidden = first, !first
		}
	}
	t.heads = append(t.heads, asked)
}

// firstAt returns the job that match would give to a machine with such room, 0 = none.
func (q *inquiry) firstAt(m *machine, room command.Resources) uint64 {
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

// headOf returns a head for a waiting job.
func (q *inquiry) headOf(seq uint64) head {
	j := q.s.jobs.Get(seq)
	return head{lane: q.s.sites[j.owner].findLane(j.class), shape: &j.class.Shape, seq: seq}
}

// amongEqual returns the site to serve among those of equal rank, which are in the order of their oldest
// heads: the machine's own site, otherwise the one with the oldest head that fits; nil if nothing fits.
func (q *inquiry) amongEqual(equal []turn, m *machine, room command.Resources) *turn {
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

// oldestAt returns a site's oldest head that has a task for the machine.
func (q *inquiry) oldestAt(t *turn, m *machine, room command.Resources) (oldest head, fits bool) {
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

// covered reports whether the head that stands for a hidden one fits too.
func (q *inquiry) covered(t *turn, hidden head, m *machine, room command.Resources) bool {
	return slices.ContainsFunc(t.heads, func(h head) bool {
		_, ok := q.firstOf(h, m, room)
		return ok && !h.hidden && q.isShape(h.shape) && q.isShape(hidden.shape)
	})
}

// pickOf returns a site's job for the machine: by order, then arrival.
func (q *inquiry) pickOf(t *turn, m *machine, room command.Resources) (best uint64) {
	for _, h := range t.heads {
		seq, ok := q.firstOf(h, m, room)
		if ok && (best == 0 || q.sooner(seq, best)) {
			best = seq
		}
	}
	return best
}

// firstOf returns a lane's first job for the machine, if there is one.
func (q *inquiry) firstOf(h head, m *machine, room command.Resources) (uint64, bool) {
	if !m.mayTake(h.shape, room) {
		return 0, false
	}
	if h.lane == nil {
		return h.seq, true
	}
	if m.held != 0 {
		return h.seq, !q.s.jobs.Get(h.seq).isBarred(m.site)
	}
	c, ok := q.s.first(h.lane, m.site)
	return c.seq, ok
}

func (q *inquiry) sooner(a, b uint64) bool {
	if p, r := q.orderOf(a), q.orderOf(b); p != r {
		return p > r
	}
	return a < b
}

func (q *inquiry) orderOf(seq uint64) int32 {
	if q.job == nil && seq == q.seq {
		return q.order
	}
	return q.s.jobs.Get(seq).order
}
