package fsm

// choice is a task and the lane it waits in.
type choice struct {
	lane *lane
	seq  uint64
	task uint32
	back bool // task is in taskSet.back, else it is job.next
}

// phase is how far the match is that the last commands called for.
type phase uint8

const (
	matched   phase = iota
	owed            // it has not begun: other work comes first
	cut             // it goes on with the next entry, unless that has commands: then it begins anew
	lastPhase = cut
)

// match hands waiting tasks to machines until no machine fits any (D2), or the entry
// has done its part: then it returns false and the next entry goes on, just where this
// one ended. It runs once an entry, after all commands.
//
// A machine that fits nothing rests until its room grows. What begins to wait
// later is fresh: while it waits, resting machines are drawn too, but tried with
// nothing else; so what nobody can run costs later entries nothing. Resting is
// part of the state, because it decides which machine a draw finds. While a new
// epoch holds nothing is drawn, so all that is offered meanwhile is awake after it.
func (s *State) match() bool {
	for first := true; s.present > 0 && !s.holds(); first = false {
		from := &s.supply
		if s.anyFresh() {
			from = &s.stock
		}
		if from.total == 0 {
			break
		}
		if !first && s.steps.spent() {
			s.phase = cut
			return false
		}
		s.tryOne(from)
	}
	s.untry()
	s.rouseFull()
	for _, c := range s.fresh {
		c.fresh = false
	}
	s.fresh = s.fresh[:0]
	s.phase = matched
	return true
}

// tryOne draws a machine, and gives it a task or has it rest.
func (s *State) tryOne(from *fenwick) {
	s.steps.used += stepDraw
	m := s.draw(from, s.retry)
	pick, ok := s.pick(m)
	if !ok {
		m.resting, m.tried = true, true
		s.weigh(m)
		s.tried = append(s.tried, m)
		s.retry++
		return
	}
	if s.params.PreferOwn {
		m = s.preferOwn(m, pick)
	}
	s.assign(pick, m)
	s.retry = 0
}

// untry ends what holds for one match: machines that fit nothing may be drawn again.
func (s *State) untry() {
	for _, m := range s.tried {
		m.tried = false
		s.weigh(m)
	}
	s.tried, s.retry = s.tried[:0], 0
}

// breakOff has the next match begin anew, since more has come: what is fresh may fit
// machines that were tried without it.
func (s *State) breakOff() {
	s.untry()
	if s.founded != 0 {
		s.phase = owed
	}
}

// rouseFull wakes what fits something fresh at sites that are full: it was not drawn,
// and is to be when an attempt there has ended.
func (s *State) rouseFull() {
	if !s.anyFresh() {
		return
	}
	for _, x := range s.sites {
		if x.state != Alive || !s.isFull(x) {
			continue
		}
		for _, c := range s.fresh {
			if c.waiting > 0 && c.need.fits(x.widest) && c.allows(x.name) {
				s.rouseFor(x, c)
			}
		}
	}
}

// anyFresh reports whether something fresh still waits.
func (s *State) anyFresh() bool {
	for len(s.fresh) > 0 {
		last := len(s.fresh) - 1
		if s.fresh[last].waiting > 0 {
			return true
		}
		s.fresh[last].fresh = false
		s.fresh = s.fresh[:last]
	}
	return false
}

// draw chooses a machine by a keyed hash of the decision's number, weighted by
// free milli-cores, or the first by site and name.
func (s *State) draw(from *fenwick, retry uint64) *machine {
	var r int64
	if !s.params.FixedOrder {
		r = Draw(s.seed, s.decisions, retry, from.total)
	}
	pos, rest := from.find(r)
	x := s.order[pos]
	in := &x.free
	if from == &s.stock {
		in = &x.stock
	}
	i, _ := in.find(rest)
	return x.machines[i]
}

// pick returns the task that a machine should run, by theory.md §2.
func (s *State) pick(m *machine) (choice, bool) {
	room := m.room()
	if m.held != 0 {
		return s.pickHeld(m, room)
	}
	owner := s.pickOwner(m, room)
	if owner == nil {
		return choice{}, false
	}
	var best choice
	s.steps.used += uint64(len(owner.lanes)) * stepLook
	for _, l := range owner.lanes {
		if !l.class.suits(m, room) {
			continue
		}
		c, ok := s.find(l, m.site)
		if ok && (best.lane == nil || s.sooner(c, best)) {
			best = c
		}
	}
	return best, best.lane != nil
}

// sooner orders one owner's tasks: priority, then arrival.
func (s *State) sooner(a, b choice) bool {
	p, q := s.jobs.get(a.seq).priority, s.jobs.get(b.seq).priority
	if p != q {
		return p > q
	}
	return a.seq < b.seq
}

// pickOwner returns the site whose turn it is among those with a task that
// fits the machine.
func (s *State) pickOwner(m *machine, room Resources) *site {
	var best *lane
	classes := s.active
	if m.resting {
		classes = s.fresh
	}
	for _, c := range classes {
		if c.waiting == 0 {
			continue
		}
		if s.steps.used += stepLook; !c.suits(m, room) {
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

// ownTie reports whether the machine's own site has a fitting task and ranks
// equal to the best.
func (s *State) ownTie(m *machine, room Resources, best *site) bool {
	x := m.site
	if x.waiting == 0 || !x.present() || s.rankOf(x).Compare(*s.rankOf(best)) != 0 {
		return false
	}
	s.steps.used += uint64(len(x.lanes)) * stepLook
	for _, l := range x.lanes {
		if l.class.suits(m, room) {
			if _, ok := s.find(l, x); ok {
				return true
			}
		}
	}
	return false
}

// bestLane returns the class's lane whose turn it is and that has a task not
// barred from site x.
func (s *State) bestLane(c *class, x *site) *lane {
	s.heap(c)
	if c.barred == 0 {
		return c.lanes[0]
	}
	var best *lane
	s.steps.used += uint64(len(c.lanes)) * stepLook
	for _, l := range c.lanes {
		if best != nil && !s.before(l, best) {
			continue
		}
		if _, ok := s.find(l, x); ok {
			best = l
		}
	}
	return best
}

// pickHeld returns the next task of the job that a machine is reserved for.
func (s *State) pickHeld(m *machine, room Resources) (choice, bool) {
	j := s.jobs.get(m.held)
	if !j.class.fits(m, room) {
		return choice{}, false
	}
	return s.taskOf(s.sites[j.owner].findLane(j.class), m.held), true
}

// preferOwn returns a free machine of the task's own site, else m. The first by
// name is taken.
func (s *State) preferOwn(m *machine, c choice) *machine {
	x := c.lane.owner
	cl := c.lane.class
	if x == m.site || s.stock.weights[x.pos] == 0 || !cl.allows(x.name) {
		return m
	}
	if s.jobs.get(c.seq).isBarred(x) {
		return m
	}
	for _, own := range x.machines {
		if !own.offered {
			continue
		}
		if s.steps.used += stepLook; cl.fits(own, own.room()) && (own.held == 0 || own.held == c.seq) {
			return own
		}
	}
	return m
}
