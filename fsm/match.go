package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// choice is a task and the lane it waits in.
type choice struct {
	lane *lane
	seq  uint64
	task uint32
	back bool // task is in taskSet.back, else it is job.next
}

// matchPhase says how far the match has come that the last commands required.
type matchPhase uint8

const (
	matched        matchPhase = iota
	owed                      // it has not begun: other work comes first
	cut                       // it continues with the next entry that has no other work first
	lastMatchPhase = cut
)

// match gives waiting tasks to machines until no machine fits any (D2), or until the entry has used its
// steps: then it returns false and the next entry continues exactly where this one ended. It runs once an
// entry, after all commands.
//
// A machine that fits nothing rests until its room grows. A class that begins to wait later is fresh:
// while it waits, resting machines are drawn too, but tried with nothing else; so tasks that nobody can
// run cost later entries nothing. Resting is part of the state because it decides which machine a draw
// finds. While a new epoch holds, nothing is drawn, so everything offered meanwhile is awake after it.
//
// match makes passes over the machines. In a pass each machine is drawn until it fits nothing. What
// commands add while a pass is cut waits for the next pass: classes that begin to wait, new machines, and
// room that grows on machines already drawn. So a pass ends whatever commands come, and each machine has
// its turn in it.
func (s *State) match() bool {
	s.drawing = true
	defer func() { s.drawing = false }()
	for first := true; ; {
		from := s.drawable()
		switch {
		case from != nil && !first && s.steps.spent():
			s.phase = cut
			return false
		case from != nil:
			s.tryOne(from)
			first = false
		case !s.endPass():
			s.phase = matched
			return true
		}
	}
}

// drawable returns the machines to draw from, nil if none is left in this pass.
func (s *matching) drawable() *store.Fenwick {
	if s.present == 0 || s.holds() {
		return nil
	}
	from := &s.supply
	if len(s.fresh) > 0 {
		from = &s.stock
	}
	if from.Total() == 0 {
		return nil
	}
	return from
}

// tryOne draws a machine, and gives it a task or makes it rest.
func (s *lifecycle) tryOne(from *store.Fenwick) {
	s.steps.used += stepDraw
	m := s.draw(from, s.retry)
	m.pass = s.pass
	pick, ok := s.pick(m)
	if !ok {
		m.resting = true
		s.putAside(m)
		s.weigh(m)
		s.retry++
		return
	}
	if s.params.PreferOwn {
		m = s.preferOwn(m, pick)
		m.pass = s.pass
	}
	s.assign(pick, m)
	s.retry = 0
}

// draw chooses a machine by a keyed hash of the decision's number, weighted by free milli-cores; with
// FixedOrder the first by site and name.
func (s *lifecycle) draw(from *store.Fenwick, retry uint64) *machine {
	var r int64
	if !s.params.FixedOrder {
		r = Draw(s.seed, s.decisions, retry, from.Total())
	}
	pos, rest := from.Find(r)
	x := s.order[pos]
	in := &x.free
	if from == &s.stock || x.missed {
		in = &x.stock
	}
	i, _ := in.Find(rest)
	return x.machines[i]
}

// pick returns the task that a machine should run (theory.md §2).
func (s *matching) pick(m *machine) (choice, bool) {
	room := m.room()
	if m.held != 0 {
		return s.pickHeld(m, room)
	}
	classes := s.active
	if m.resting && !m.site.missed {
		classes = s.fresh
	}
	return s.pickOf(classes, m, room)
}

// pickOf returns the task of some classes that a machine should run with room.
func (s *matching) pickOf(classes []*class, m *machine, room command.Resources) (choice, bool) {
	owner := s.pickOwner(classes, m, room)
	if owner == nil {
		return choice{}, false
	}
	var best choice
	for _, l := range owner.lanes {
		if !s.suits(l.class, m, room) {
			continue
		}
		c, ok := s.find(l, m.site)
		if ok && (best.lane == nil || s.sooner(c, best)) {
			best = c
		}
	}
	return best, best.lane != nil
}

// sooner orders one owner's tasks: order, then arrival.
func (s *jobTable) sooner(a, b choice) bool {
	p, q := s.jobs.Get(a.seq).order, s.jobs.Get(b.seq).order
	if p != q {
		return p > q
	}
	return a.seq < b.seq
}

// pickOwner returns the site whose turn it is among those with a task of some classes that fits the machine.
func (s *matching) pickOwner(classes []*class, m *machine, room command.Resources) *site {
	var best *lane
	for _, c := range classes {
		if c.waiting == 0 {
			continue
		}
		if !s.suits(c, m, room) {
			continue
		}
		l := s.bestLane(c, m.site)
		if l != nil && (best == nil || s.before(l, best)) {
			best = l
		}
	}
	if best == nil || best.owner == m.site {
		if best == nil {
			return nil
		}
		return best.owner
	}
	if s.ownTie(m, room, best.owner) {
		return m.site
	}
	return best.owner
}

// ownTie reports whether the machine's own site has a fitting task and a rank equal to the best.
func (s *ranking) ownTie(m *machine, room command.Resources, best *site) bool {
	x := m.site
	if x.waiting == 0 || !x.present() || s.rankOf(x).Compare(*s.rankOf(best)) != 0 {
		return false
	}
	tie := false
	for _, l := range x.lanes { // all are counted: their order differs between replicas
		if s.suits(l.class, m, room) {
			tie = tie || l.hasFor(x)
		}
	}
	return tie
}

// bestLane returns the lane of the class whose turn it is and that has a task not barred from site x.
func (s *ranking) bestLane(c *class, x *site) *lane {
	s.heap(c)
	switch c.barredFrom.of(x) {
	case 0:
		return c.lanes[0]
	case c.jobs:
		return nil
	}
	var best *lane
	s.steps.used += uint64(len(c.lanes)) * stepLook
	for _, l := range c.lanes {
		if best != nil && !s.before(l, best) {
			continue
		}
		if l.hasFor(x) {
			best = l
		}
	}
	return best
}

// pickHeld returns the next task of the job that a machine is reserved for.
func (s *jobTable) pickHeld(m *machine, room command.Resources) (choice, bool) {
	j := s.jobs.Get(m.held)
	if !s.fits(j.class, m, room) {
		return choice{}, false
	}
	return s.taskOf(s.sites[j.owner].findLane(j.class), m.held), true
}

// preferOwn returns a free machine of the task's own site, the first by name, or m if there is none.
func (s *jobTable) preferOwn(m *machine, c choice) *machine {
	x := c.lane.owner
	cl := c.lane.class
	if x == m.site || s.stock.Weight(x.pos) == 0 || !cl.Allows(x.name) {
		return m
	}
	if s.jobs.Get(c.seq).isBarred(x) {
		return m
	}
	for _, own := range x.machines {
		if own.tried {
			s.steps.used += stepLook
			continue
		}
		if s.fits(cl, own, own.room()) && (own.held == 0 || own.held == c.seq) {
			return own
		}
	}
	return m
}
