package core

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// offerBook keeps the last offer made.
type offerBook struct {
	count    uint64 // offers made in this incarnation
	last     []command.Machine
	lastHome command.Resources
	inflight bool
	spare    *command.Offer // one that nobody holds, to be filled again
	// owed: an assignment was declined for lack of room, without a new offer. The
	// state bars it from here until the next one, so one is made when the room
	// may be back, though it says nothing new.
	owed, repeat bool
}

// offer proposes a new offer when what is exposed changed (step 4). One is
// under way at a time: a burst of home starts costs two entries, not many.
func (c *Core) offer() {
	if c.offers.inflight {
		return
	}
	o := c.exposedNow()
	if !c.offerChanged(o) {
		c.offers.spare = o
		return
	}
	c.stamp(o)
	c.offers.inflight = true
	c.out.add(o, func(command.Result, StateReader, *Effects) { c.offers.inflight = false })
}

// offerChanged reports whether an offer says anything new.
func (c *Core) offerChanged(o *command.Offer) bool {
	return c.offers.count == 0 || c.offers.repeat || o.Home != c.offers.lastHome || !slices.Equal(o.Machines, c.offers.last)
}

// exposedNow returns what this site would offer now.
func (c *Core) exposedNow() *command.Offer {
	reserve := c.limits.ReserveCores * 1000
	o := c.offers.spare
	if c.offers.spare = nil; o == nil {
		o = &command.Offer{}
	}
	*o = command.Offer{Machines: o.Machines[:0]}
	for _, name := range c.order {
		m := c.machines[name]
		whole, _ := c.limits.Exposed(m.Machine, command.Resources{}, reserve)
		var now command.Resources
		now, reserve = c.limits.Exposed(m.Machine, c.used.home[name], reserve)
		if !c.closing && !c.drain.On && !c.isResting(name) && c.full == nil {
			o.Machines = append(o.Machines, c.marked(m, command.Machine{Name: name, Resources: now, Whole: whole, Runs: runsOf(m.Machine)}))
		}
		o.Capacity = plus(o.Capacity, command.Resources(m.Resources))
		o.Home = plus(o.Home, c.used.home[name])
	}
	return o
}

// marked adds labels and slots to what is offered of a machine. Home runs take
// slots; with none left nothing is offered, and it may be again some day.
func (c *Core) marked(m machine, o command.Machine) command.Machine {
	o.Labels = m.labels
	if !m.limited {
		return o
	}
	left := m.slots - c.used.homeTasks[o.Name]
	if o.Slots = max(1, left); left <= 0 {
		o.Resources = command.Resources{}
	}
	if m.slots == 0 {
		o.Whole = command.Resources{}
	}
	return o
}

// stamp gives an offer the next version. Versions grow over all incarnations.
func (c *Core) stamp(o *command.Offer) {
	c.offers.count++
	c.offers.last, c.offers.lastHome = o.Machines, o.Home
	c.offers.owed, c.offers.repeat = false, false
	o.Version = c.incarnation<<32 | c.offers.count
}

// occupancy is what attempts take on the machines now.
type occupancy struct {
	all  map[string]command.Resources // by machine
	home map[string]command.Resources // of these, what was started outside the log
	// The attempts themselves, likewise.
	tasks, homeTasks map[string]int64
}

func newOccupancy() occupancy {
	return occupancy{
		all: map[string]command.Resources{}, home: map[string]command.Resources{},
		tasks: map[string]int64{}, homeTasks: map[string]int64{},
	}
}

// add counts an attempt in (sign 1) or out (sign −1).
func (o *occupancy) add(a *attempt, sign int64) {
	need := command.Resources{MilliCPU: sign * a.Need.MilliCPU, MemMiB: sign * a.Need.MemMiB, GPU: sign * a.Need.GPU}
	count(o.all, o.tasks, a.Machine, need, sign)
	if a.Home {
		count(o.home, o.homeTasks, a.Machine, need, sign)
	}
}

// count adds one attempt's need to a machine's. Without attempts a machine is not
// kept: the names of a cluster's nodes come and go.
func count(all map[string]command.Resources, tasks map[string]int64, machine string, need command.Resources, sign int64) {
	all[machine] = plus(all[machine], need)
	if tasks[machine] += sign; tasks[machine] == 0 {
		delete(all, machine)
		delete(tasks, machine)
	}
}

func plus(a, b command.Resources) command.Resources {
	return command.Resources{MilliCPU: a.MilliCPU + b.MilliCPU, MemMiB: a.MemMiB + b.MemMiB, GPU: a.GPU + b.GPU}
}

// fits reports whether need fits in total less used.
func fits(total, used, need command.Resources) bool {
	return used.MilliCPU+need.MilliCPU <= total.MilliCPU &&
		used.MemMiB+need.MemMiB <= total.MemMiB &&
		used.GPU+need.GPU <= total.GPU
}

// Capacity takes a handler's machines as they are now.
func (c *Core) Capacity(ev CapacityEvent) {
	for name, m := range c.machines {
		if m.handler == ev.Handler {
			delete(c.machines, name)
		}
	}
	for _, m := range c.terms[ev.Handler].onTerms(ev.Handler, ev.Machines) {
		c.machines[m.Name] = m
	}
	c.order = c.order[:0]
	for name := range c.machines {
		c.order = append(c.order, name)
	}
	slices.Sort(c.order)
	c.troubles.Keep(func(name string) bool { _, there := c.machines[name]; return there })
	c.home.stuck = 0 // some machine may take them now
}
