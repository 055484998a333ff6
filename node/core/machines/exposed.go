package machines

import "github.com/cloudshare/cloudshare/fsm/command"

// Expose fills an offer with what the site would offer now; with closed it offers no
// machine.
func (s *Set) Expose(o *command.Offer, closed bool) {
	reserve := s.limits.ReserveCores * 1000
	*o = command.Offer{Machines: o.Machines[:0]}
	for _, name := range s.order {
		m := s.byName[name]
		whole, _ := s.limits.Exposed(m.Machine, command.Resources{}, reserve)
		var now command.Resources
		now, reserve = s.limits.Exposed(m.Machine, s.used.home[name], reserve)
		if !closed && !s.IsResting(name) {
			o.Machines = append(o.Machines, s.marked(m, command.Machine{
				Name: name, Resources: now, Whole: whole,
				Runs: runsOf(m.Machine),
			}))
		}
		o.Capacity = plus(o.Capacity, command.Resources(m.Resources))
		o.Home = plus(o.Home, s.used.home[name])
	}
}

// marked adds labels and slots to what is offered of a machine. Home runs take
// slots; with none left nothing is offered, and it may be again some day.
func (s *Set) marked(m machine, o command.Machine) command.Machine {
	o.Labels = m.labels
	if !m.limited {
		return o
	}
	left := m.slots - s.used.homeTasks[o.Name]
	if o.Slots = max(1, left); left <= 0 {
		o.Resources = command.Resources{}
	}
	if m.slots == 0 {
		o.Whole = command.Resources{}
	}
	return o
}
