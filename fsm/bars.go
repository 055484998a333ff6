package fsm

import (
	"cmp"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// bar keeps a job from a site that declined one of its tasks, until the site's
// next offer. It holds for the whole job: its tasks are alike, so the site would
// decline them one after the other.
type bar struct {
	site   int32
	offers uint64 // the site's count at the decline; the bar is void once that has grown
}

// isBarred reports whether the job is kept from x's standing offer.
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

// barWalk asks a job's bars for one site after the other, in the order of their ids: a
// queue has as many gates as sites declined something of it, and jobs have as many bars.
type barWalk []bar

// isBarred is job.isBarred; no later call may be for a site before x.
func (w *barWalk) isBarred(x *site) bool {
	for len(*w) > 0 && (*w)[0].site < x.id {
		*w = (*w)[1:]
	}
	return len(*w) > 0 && (*w)[0].site == x.id && (*w)[0].offers == x.offers
}

// findBar searches by hand: a look past declined jobs asks it for each of them.
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

// bar keeps a job from x until x's next offer. A machine of x that is held for the
// job could not run it any more, so the hold ends.
//
// REQUIRES: j came from State.mutJob.
func (s *State) bar(seq uint64, j *job, x *site) {
	if j.isBarred(x) {
		return
	}
	t := j.set(s.epoch).rare()
	none := len(t.bars) == 0
	t.bars = s.withBar(t.bars, x)
	if j.waiting() > 0 {
		if none {
			j.class.barred++
		}
		s.sites[j.owner].findLane(j.class).queue(j.priority).addGate(x)
	}
	if m := s.held[seq]; m != nil && m.site == x {
		s.unhold(seq)
	}
}

// withBar returns the bars that still hold and one of x, in a list of its own.
func (s *State) withBar(bars []bar, x *site) []bar {
	out := make([]bar, 0, len(bars)+1)
	for _, b := range bars {
		if b.site != x.id && s.sites[b.site].offers == b.offers {
			out = append(out, b)
		}
	}
	i, _ := findBar(out, x.id)
	return slices.Insert(out, i, bar{x.id, x.offers})
}

// gate remembers how far one site has looked into a queue past jobs that are barred
// from it, so that no job is passed twice. It is derived: without it the search
// would find the same job, later.
type gate struct {
	site   int32
	offers uint64 // the site's count; a gate of another count is void
	// Invariant: each waiting job before from is barred from the site, or in open.
	from uint64
	// open is by number; some may wait no longer, or be barred by now.
	open store.Sorted[uint64]
}

// advance is how far a search in a queue has come with a site's gate.
type advance struct {
	gate   int    // position in queue.gates, −1 = there is none
	passed int    // so many of gate.open
	from   uint64 // the new gate.from
}

func (q *queue) findGate(site int32) (int, bool) {
	return slices.BinarySearchFunc(q.gates, site, func(g gate, id int32) int { return cmp.Compare(g.site, id) })
}

// addGate gives x a gate, if it has none.
func (q *queue) addGate(x *site) {
	i, ok := q.findGate(x.id)
	switch {
	case !ok:
		q.gates = slices.Insert(q.gates, i, gate{site: x.id, offers: x.offers})
	case q.gates[i].offers != x.offers:
		q.gates[i] = gate{site: x.id, offers: x.offers}
	}
}

// admit tells the gates of a job that begins to wait.
func (q *queue) admit(s *State, seq uint64, j *job) {
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

// seek returns the queue's first waiting job that is not barred from x, 0 if there
// is none, and how far x's gate moves up to it; skip is passed over. It changes nothing.
func (q *queue) seek(s *State, x *site, skip uint64) (seq uint64, to advance) {
	at, ok := q.findGate(x.id)
	if !ok || q.gates[at].offers != x.offers {
		return q.after(s, 0, func(_ *job, seq uint64) bool { return seq != skip }), advance{gate: -1}
	}
	may := func(j *job, seq uint64) bool { return seq != skip && !j.isBarred(x) }
	g := &q.gates[at]
	to = advance{gate: at, from: g.from}
	for open := range g.open.All() {
		if s.isWaiting(*open) && may(s.jobs.Get(*open), *open) {
			return *open, to
		}
		to.passed++
	}
	if seq = q.after(s, g.from, may); seq != 0 {
		to.from = seq
	} else {
		to.from = s.nextSeq
	}
	return seq, to
}

// move moves a gate as far as seek says.
func (q *queue) move(to advance) {
	if to.gate < 0 {
		return
	}
	g := &q.gates[to.gate]
	for g.from = to.from; to.passed > 0; to.passed-- {
		g.open.Remove(store.Place{})
	}
}

// after returns the first waiting job from a sequence number on that is wanted, 0 if
// there is none.
func (q *queue) after(s *State, from uint64, wanted func(*job, uint64) bool) uint64 {
	for seq := range q.seqs.From(q.seqs.Search(func(o *uint64) bool { return *o >= from })) {
		if wanted(s.jobs.Get(*seq), *seq) {
			return *seq
		}
	}
	return 0
}

// first returns the lane's first task that is not barred from site x. It changes
// nothing.
func (s *State) first(l *lane, x *site) (choice, bool) {
	for q := range l.queues.From(l.begin(x)) {
		if seq, _ := (*q).seek(s, x, 0); seq != 0 {
			return s.taskOf(l, seq), true
		}
	}
	return choice{}, false
}

// find is first, and moves x's gates, so that the next search begins where this one
// ended.
func (s *State) find(l *lane, x *site) (choice, bool) {
	if l.class.barred == 0 {
		return s.taskOf(l, l.seq), true
	}
	return s.findBut(l, x, 0)
}

// findBut is find among all jobs but one.
//
// REQUIRES: that one begins to wait next, which tells the gates of it; or is 0.
func (s *State) findBut(l *lane, x *site, skip uint64) (choice, bool) {
	passed := false
	s.sought++
	for q := range l.queues.From(l.begin(x)) {
		seq, to := (*q).seek(s, x, skip)
		(*q).move(to)
		if seq != 0 {
			if passed {
				l.deepen(x, *q)
			}
			return s.taskOf(l, seq), true
		}
		passed = true
	}
	if passed {
		l.deepen(x, nil)
	}
	return choice{}, false
}

// taskOf chooses a waiting job's next task.
func (s *State) taskOf(l *lane, seq uint64) choice {
	task, back := s.jobs.Get(seq).nextTask()
	return choice{l, seq, task, back}
}

// nextTask returns a waiting job's next task: returned ones first, lowest index
// first.
func (j *job) nextTask() (task uint32, back bool) {
	if b := j.tasks.back().First(); b != nil {
		return b.task, true
	}
	return j.next, false
}

// blocked returns the sites from which all that waits of a class is barred, but for
// a job that begins to wait next and those that it is barred from: their machines rest
// though they fit. Each queue has a gate of such a site, so those of one queue are all
// that need a look; and what was found for one site is asked about the others before they
// are searched for. It moves the gates: else a site that hands back many jobs at once
// would look past all before, for each.
//
// REQUIRES: as findBut.
func (s *State) blocked(c *class, skip uint64) (out []*site) {
	if c.barred == 0 || len(c.lanes) == 0 || s.endsUnbarred(c, skip) {
		return nil
	}
	var own, found barWalk
	if skip != 0 {
		own = s.jobs.Get(skip).tasks.bars()
	}
	has := false
	for _, g := range c.lanes[0].top().gates {
		x := s.sites[g.site]
		if g.offers != x.offers || own.isBarred(x) || has && !found.isBarred(x) {
			continue
		}
		pick, ok := s.findIn(c, x, skip)
		if !ok {
			out = append(out, x)
			continue
		}
		j := s.jobs.Get(pick.seq)
		if !j.hasBars() {
			return nil // nobody declined it
		}
		has, found = true, j.tasks.bars()
	}
	return out
}

// endsUnbarred reports whether a job that nobody declined is the latest of a lane's first
// or last queue, but for one job: then nobody is barred from all. Of many jobs submitted
// together only the first has to look further.
func (s *State) endsUnbarred(c *class, skip uint64) bool {
	for _, l := range c.lanes {
		if s.isUnbarred(l.top(), skip) || s.isUnbarred(*l.queues.Final(), skip) {
			return true
		}
	}
	return false
}

func (s *State) isUnbarred(q *queue, skip uint64) bool {
	seq := *q.seqs.Final()
	return seq != skip && !s.jobs.Get(seq).hasBars()
}

// findIn is findBut in any lane of a class.
func (s *State) findIn(c *class, x *site, skip uint64) (choice, bool) {
	for _, l := range c.lanes {
		if pick, ok := s.findBut(l, x, skip); ok {
			return pick, true
		}
	}
	return choice{}, false
}

// rouseFor wakes the resting machines of a site that fit a class.
func (s *State) rouseFor(x *site, c *class) {
	for _, m := range x.machines {
		if !m.offered {
			continue
		}
		if !m.resting {
			s.steps.used += stepLook
		} else if s.suits(c, m, m.room()) {
			s.rouse(m)
		}
	}
}
