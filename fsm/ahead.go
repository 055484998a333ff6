package fsm

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// maxAhead is how many tasks one end earns its machine, and how much more than what is offered of a machine it may be
// assigned, as a multiple of that.
const maxAhead = 2

// earning is a machine on which a task ended in this entry, after so short a run that it may get tasks ahead.
type earning struct {
	machine *machine
	tasks   int64             // Invariant: ≤ maxAhead
	need    command.Resources // of the task that ended
}

// aheadOf returns how many tasks ahead the end of a run earns: enough to fill the time that its machine idles until
// the next assignment, but none if that is short beside the run.
func aheadOf(idleMs, runMs int64) int64 {
	switch {
	case idleMs == 0 || runMs > 4*idleMs:
		return 0
	case runMs > idleMs:
		return 1
	}
	return maxAhead
}

// earn notes the end of a run on a machine.
func (s *matching) earn(m *machine, need command.Resources, runMs int64) {
	if n := aheadOf(m.site.idleMs, runMs); n > 0 {
		s.earned = append(s.earned, earning{m, n, need})
	}
}

// matchAhead gives tasks that nobody can begin now to machines that will soon end what they run: to those where a short
// run ended in this entry, in the order of the ends, one task each and then a second one. It reports whether the match
// is over: a reservation that an assignment ended may have left a machine to be tried.
//
// Projected waits count a task as running from its assignment on, so under such a policy nothing is assigned ahead.
func (s *State) matchAhead() (over bool) {
	if len(s.earned) == 0 || s.waits != nil || s.holds() {
		return true
	}
	before := s.decisions
	for n := range int64(maxAhead) {
		for i := range s.earned {
			if s.present == 0 || s.steps.spent() {
				break
			}
			if e := &s.earned[i]; e.tasks > n && !s.assignAhead(e) {
				e.tasks = 0
			}
		}
	}
	return s.decisions == before || s.match()
}

// assignAhead gives a machine one task beyond its room, if one fits it.
func (s *lifecycle) assignAhead(e *earning) bool {
	s.steps.used += stepDraw
	m, x := e.machine, e.machine.site
	if !m.offered || m.held != 0 || x.state != Alive || s.isFull(x) {
		return false
	}
	pick, ok := s.pickOf(s.active, m, e.room())
	if !ok || !x.reach.Plus(pick.lane.class.Need).FitsIn(s.bounds.site) {
		return false
	}
	s.assign(pick, m)
	return true
}

// room returns how large a task its machine may get ahead, if it may hold so many for each that it has room for: no
// larger than the one that ended, for that room is what comes back soon. A wider one would keep others from free room,
// be handed back, and never wait long enough for a reservation.
func (e *earning) room() command.Resources {
	m, times := e.machine, 1+e.tasks
	if m.slots > 0 && m.tasks >= times*m.slots {
		return command.Resources{}
	}
	o := m.exposed
	left := command.Resources{MilliCPU: times * o.MilliCPU, MemMiB: times * o.MemMiB, GPU: times * o.GPU}.Minus(m.used)
	return left.Lesser(o).Lesser(e.need)
}

// handBack executes a HandBack: the assignments go back to the queue.
func (s *State) handBack(x *site, c *command.HandBack) {
	for i := range c.Attempts {
		s.sendBack(x, &c.Attempts[i], c.Reason, returned)
	}
}

// CouldBegin reports whether an assignment of a site could begin now at a machine of another one.
func (s *views) CouldBegin(name string, ref command.AttemptRef) bool {
	at := s.byName[name]
	if at == nil {
		return false
	}
	slot, ok := s.findAttempt(&ref, at)
	if !ok {
		return false
	}
	j := s.jobs.Get(s.attempts.Get(slot).seq)
	return slices.ContainsFunc(s.order, func(x *site) bool {
		return x != at && x.state == Alive && x.stock.Total() > 0 && !s.isFull(x) && !j.isBarred(x) &&
			slices.ContainsFunc(x.machines, func(m *machine) bool {
				return m.held == 0 && m.mayTake(&j.class.Shape, m.room())
			})
	})
}
