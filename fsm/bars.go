package fsm

import (
	"cmp"
	"slices"
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
	if j.tasks == nil {
		return false
	}
	i, ok := findBar(j.tasks.bars, x.id)
	return ok && j.tasks.bars[i].offers == x.offers
}

// hasBars reports whether any site declined the job, in whatever offer.
func (j *job) hasBars() bool { return j.tasks != nil && len(j.tasks.bars) > 0 }

func findBar(bars []bar, site int32) (int, bool) {
	return slices.BinarySearchFunc(bars, site, func(b bar, id int32) int { return cmp.Compare(b.site, id) })
}

// bar keeps a job from x until x's next offer. A machine of x that is held for the
// job could not run it any more, so the hold ends.
//
// REQUIRES: j came from State.mutJob.
func (s *State) bar(seq uint64, j *job, x *site) {
	if j.isBarred(x) {
		return
	}
	t := j.set(s.epoch)
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
	// open is sorted; some may wait no longer, or be barred by now. Nobody else has
	// its array: it grows in place, for many jobs may return in one entry.
	open []uint64
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
	q.gates = slices.DeleteFunc(q.gates, func(g gate) bool { return g.offers != s.sites[g.site].offers })
	for i := range q.gates {
		g := &q.gates[i]
		if seq >= g.from || j.isBarred(s.sites[g.site]) {
			continue
		}
		if k, ok := slices.BinarySearch(g.open, seq); !ok {
			g.open = slices.Insert(g.open, k, seq)
		}
	}
	if j.tasks == nil {
		return
	}
	for _, b := range j.tasks.bars {
		if x := s.sites[b.site]; b.offers == x.offers {
			q.addGate(x)
		}
	}
}

// seek returns the queue's first waiting job that is not barred from x, 0 if there
// is none, and x's gate moved up to it; skip is passed over. It changes nothing.
func (q *queue) seek(s *State, x *site, skip uint64) (seq uint64, at int, moved gate) {
	at, ok := q.findGate(x.id)
	if !ok || q.gates[at].offers != x.offers {
		return q.after(s, 0, func(_ *job, seq uint64) bool { return seq != skip }), -1, gate{}
	}
	may := func(j *job, seq uint64) bool { return seq != skip && !j.isBarred(x) }
	moved = q.gates[at]
	for len(moved.open) > 0 {
		if seq = moved.open[0]; s.isWaiting(seq) && may(s.jobs.get(seq), seq) {
			return seq, at, moved
		}
		moved.open = moved.open[1:]
	}
	if seq = q.after(s, moved.from, may); seq != 0 {
		moved.from = seq
	} else {
		moved.from = s.nextSeq
	}
	return seq, at, moved
}

// after returns the first waiting job from a sequence number on that is wanted, 0 if
// there is none.
func (q *queue) after(s *State, from uint64, wanted func(*job, uint64) bool) uint64 {
	fresh, back := q.fresh[q.at:], q.back
	i, _ := slices.BinarySearch(fresh, from)
	k, _ := slices.BinarySearch(back, from)
	for fresh, back = fresh[i:], back[k:]; len(fresh)+len(back) > 0; {
		var seq uint64
		if len(back) == 0 || len(fresh) > 0 && fresh[0] <= back[0] {
			seq, fresh = fresh[0], fresh[1:]
		} else {
			seq, back = back[0], back[1:]
		}
		if s.isWaiting(seq) && wanted(s.jobs.get(seq), seq) {
			return seq
		}
	}
	return 0
}

// first returns the lane's first task that is not barred from site x. It changes
// nothing.
func (s *State) first(l *lane, x *site) (choice, bool) {
	for _, q := range l.queues {
		if seq, _, _ := q.seek(s, x, 0); seq != 0 {
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
	for _, q := range l.queues {
		seq, at, moved := q.seek(s, x, skip)
		if at >= 0 {
			q.gates[at] = moved
		}
		if seq != 0 {
			return s.taskOf(l, seq), true
		}
	}
	return choice{}, false
}

// taskOf chooses a waiting job's next task.
func (s *State) taskOf(l *lane, seq uint64) choice {
	task, back := s.jobs.get(seq).nextTask()
	return choice{l, seq, task, back}
}

// nextTask returns a waiting job's next task: returned ones first, lowest index
// first.
func (j *job) nextTask() (task uint32, back bool) {
	if j.tasks != nil && j.tasks.back.n > 0 {
		return j.tasks.back.first().task, true
	}
	return j.next, false
}

// blocked returns the sites from which all that waits of a class is barred, but for
// the job skip: their machines rest though they fit. Each queue has a gate of such a
// site, so those of one queue are all that need a look. It moves them: else a site
// that hands back many jobs at once would look past all before, for each.
//
// REQUIRES: as findBut.
func (s *State) blocked(c *class, skip uint64) (out []*site) {
	if c.barred == 0 || len(c.lanes) == 0 {
		return nil
	}
	for _, g := range c.lanes[0].queues[0].gates {
		x := s.sites[g.site]
		if g.offers == x.offers && !slices.ContainsFunc(c.lanes, func(l *lane) bool {
			_, ok := s.findBut(l, x, skip)
			return ok
		}) {
			out = append(out, x)
		}
	}
	return out
}

// rouseFor wakes the resting machines of a site that fit a class.
func (s *State) rouseFor(x *site, c *class) {
	for _, m := range x.machines {
		if !m.offered {
			continue
		}
		if s.steps.used += stepLook; m.resting && c.suits(m, m.room()) {
			s.rouse(m)
		}
	}
}
