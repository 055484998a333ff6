package fsm

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Sites returns every site that ever registered, by id.
func (s *views) Sites() []SiteView {
	out := make([]SiteView, 0, len(s.order))
	for _, x := range s.order {
		out = append(out, s.viewSite(x))
	}
	return out
}

// Site returns one site.
func (s *views) Site(id string) (SiteView, bool) {
	x := s.byName[id]
	if x == nil {
		return SiteView{}, false
	}
	return s.viewSite(x), true
}

// SiteState returns a site's state and incarnation; incarnation 0 means that it never registered.
func (s *views) SiteState(id string) (state SiteState, incarnation uint64) {
	if x := s.byName[id]; x != nil {
		return x.state, x.incarnation
	}
	return Alive, 0
}

// Lent returns how many thousandths of cores all sites together lend now, in use or free.
func (s *views) Lent() (milliCPU int64) {
	for _, x := range s.order {
		if x.present() {
			milliCPU += x.exposed.MilliCPU
		}
	}
	return milliCPU
}

// Retired reports whether the state no longer accepts a job with that number: it would answer JobRetired, and
// nothing would run.
func (s *views) Retired(id command.JobID) bool {
	x := s.byName[id.Site]
	return x != nil && x.nums[id.Num] == 0 && x.hasRetired(id.Num)
}

func (s *views) viewSite(x *site) SiteView {
	v := SiteView{
		ID: x.name, Node: x.node, State: x.state, Incarnation: x.incarnation,
		HTTP: x.http, Peer: x.peer, Gossip: x.gossip, MaxVersion: x.maxVersion,
		Capacity: x.capacity, Exposed: x.exposed, Home: x.home, OfferVersion: x.offerVersion,
	}
	if x.present() {
		v.Closed = x.closed
	}
	v.Assigned = x.used
	for _, m := range x.machines {
		room := m.room()
		room = command.Resources{MilliCPU: max(0, room.MilliCPU), MemMiB: max(0, room.MemMiB), GPU: max(0, room.GPU)}
		v.Machines = append(v.Machines, MachineView{
			Name: m.name, Exposed: m.exposed, Free: room, Runs: m.runs, Slots: m.slots, Labels: m.labels.text(),
			Reserved: s.heldFor(m),
		})
	}
	return v
}

func (s *views) heldFor(m *machine) string {
	if m.held == 0 {
		return ""
	}
	j := s.jobs.Get(m.held)
	return s.idOf(j).String()
}

// String returns the state's name in the API.
func (t SiteState) String() string {
	switch t {
	case Alive:
		return "alive"
	case Suspected:
		return "suspect"
	case SiteGone:
		return "lost"
	case Left:
		return "left"
	}
	return fmt.Sprintf("SiteState(%d)", uint8(t))
}

// Queue returns what each site has waiting, by site, withdrawn tasks included.
func (s *views) Queue() []QueueView {
	var out []QueueView
	for _, x := range s.order {
		if x.waiting == 0 {
			continue
		}
		v := QueueView{Site: x.name, Waiting: x.waiting, MilliCPU: x.cpu, OldestMs: s.time}
		for _, l := range x.lanes {
			for q := range l.queues.All() {
				v.OldestMs = min(v.OldestMs, s.jobs.Get(*(*q).seqs.First()).headMs())
			}
		}
		_, _, p := s.standing(x)
		v.Priority = p.String()
		out = append(out, v)
	}
	return out
}

// WaitingFits reports whether some waiting task, of any present owner, could ever run on what the site exposes
// (event 1 of the paper). Tasks that the site has declined do not count.
func (s *views) WaitingFits(name string) bool {
	x := s.byName[name]
	return x != nil && slices.ContainsFunc(s.active, func(c *class) bool {
		return x.couldRun(&c.Shape) && c.jobs > c.barredFrom.of(x)
	})
}

// Lending is what a site lends at a moment.
type Lending struct {
	Site string
	// MilliCPU are exposed, InUse of them reserved or at work for the federation.
	MilliCPU, InUse int64
}

// Lending returns what each present site lends, by name. A suspected site lends nothing.
func (s *views) Lending() []Lending {
	out := make([]Lending, 0, len(s.order))
	for _, x := range s.order {
		if x.state == Alive && x.exposed.MilliCPU > 0 {
			out = append(out, Lending{x.name, x.exposed.MilliCPU, x.used.MilliCPU})
		}
	}
	return out
}

// WaitingWouldFit reports whether a task of another site waits that could ever run on what the site exposes. Unlike
// with WaitingFits, tasks that the site has declined count. It begins with the kind of tasks whose number is first, and
// looks at so many kinds and machines at most: left says how many it might still have, below 0 that they did not
// suffice.
func (s *views) WaitingWouldFit(name string, first, most int) (fits bool, left int) {
	x := s.byName[name]
	if x == nil {
		return false, most
	}
	for i := range s.active {
		if most -= 1 + len(x.machines); most < 0 {
			return false, most
		}
		c := s.active[(i+first%len(s.active))%len(s.active)]
		if slices.ContainsFunc(c.lanes, func(l *lane) bool { return l.owner != x }) && x.couldRun(&c.Shape) {
			return true, most
		}
	}
	return false, most
}

// Fits reports whether a site's exposed machines, if they were empty, could run a task of the job.
func (s *views) Fits(name string, spec command.JobSpec) bool {
	x, h := s.byName[name], spec.Shape()
	return x != nil && x.present() && x.couldRun(&h)
}

// AnyFits reports whether any present site could run the job; if not, it returns why.
func (s *views) AnyFits(spec command.JobSpec) (bool, string) {
	h := spec.Shape()
	return s.anyFits(&h)
}

func (s *views) anyFits(h *command.Shape) (bool, string) {
	for _, x := range s.sites {
		if x.present() && x.couldRun(h) {
			return true, ""
		}
	}
	return false, s.unfit(h)
}

// Stats are the state's sizes, for metrics.
type Stats struct {
	Sites        int
	Jobs         int // in the state, ended ones included
	EndedJobs    int
	Waiting      uint64 // tasks, withdrawn ones included
	Assigned     int    // tasks assigned and not reported running
	Running      int    // tasks running, stopping ones included
	Shapes       int    // different requirements
	Payloads     int    // different payloads
	Reservations int
	Decisions    uint64 // assignments since genesis
}

// Stats returns the state's sizes.
func (s *views) Stats() Stats {
	return Stats{
		Sites: len(s.sites), Jobs: s.jobs.Len(), EndedJobs: s.kept, Waiting: s.waiting,
		Assigned: s.assigned, Running: len(s.live) - s.assigned, Shapes: len(s.classes),
		Payloads: len(s.payloads), Reservations: s.reservations.Len(), Decisions: s.decisions,
	}
}
