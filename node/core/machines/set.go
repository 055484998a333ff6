// Package machines keeps what a site's handlers have, on which terms and what attempts take
// of it: it finds room for the site's own tasks, checks the room of assignments, and says
// what is left to be offered.
package machines

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// Set is the machines of a site, and what runs there takes of them.
type Set struct {
	limits node.Exposure
	now    *turn.Clock
	// byName is what the handlers have; order holds the names sorted.
	byName map[string]machine
	order  []string
	// terms are those of each handler, by its name; one without any has no labels.
	terms    map[string]Terms
	files    lending
	troubles *trouble.Troubles
	// used counts every attempt from begin until it ended or was dropped.
	used occupancy
	// freed are machines that may have got room since Freed was called.
	freed map[string]bool
}

// NewSet returns a site's set without handlers; now is the moment of the turn.
func NewSet(limits node.Exposure, now *turn.Clock, troubles *trouble.Troubles) Set {
	return Set{
		limits: limits, now: now, troubles: troubles,
		byName: map[string]machine{}, terms: map[string]Terms{}, used: newOccupancy(), freed: map[string]bool{},
	}
}

// AddHandler says on which terms a handler lends its machines.
func (s *Set) AddHandler(name string, t Terms) { s.terms[name] = t }

// LendFiles says that files travel with tasks here: those of a task of another site may take so many bytes.
func (s *Set) LendFiles(most int64) { s.files = lending{travel: true, most: most, room: most} }

// SetRoom says how many bytes there is room for now: machines promise no more to other sites' tasks.
func (s *Set) SetRoom(bytes int64) {
	if room := min(bytes, s.files.most); room != s.files.room {
		s.files.room = room
		s.relabel()
	}
}

// relabel has the machines say what they promise now.
func (s *Set) relabel() {
	lists := map[string][]executor.Machine{}
	for _, name := range s.order {
		m := s.byName[name]
		lists[m.handler] = append(lists[m.handler], m.Machine)
	}
	for handler, list := range lists {
		for _, m := range s.terms[handler].onTerms(handler, list, s.files) {
			s.byName[m.Name] = m
		}
	}
}

// Update takes a handler's machines as they are now.
func (s *Set) Update(handler string, list []executor.Machine) {
	for name, m := range s.byName {
		if m.handler == handler {
			delete(s.byName, name)
		}
	}
	for _, m := range s.terms[handler].onTerms(handler, list, s.files) {
		s.byName[m.Name], s.freed[m.Name] = m, true
	}
	s.order = s.order[:0]
	for name := range s.byName {
		s.order = append(s.order, name)
	}
	slices.Sort(s.order)
	s.troubles.Keep(func(name string) bool { _, there := s.byName[name]; return there })
}

// HandlerOf returns the handler that has a machine, "" if none has it any more.
func (s *Set) HandlerOf(machine string) string { return s.byName[machine].handler }

// Take counts an attempt in.
func (s *Set) Take(machine string, need executor.Resources, home bool) {
	s.used.add(machine, need, home, 1)
}

// Free counts an attempt out.
func (s *Set) Free(machine string, need executor.Resources, home bool) {
	s.used.add(machine, need, home, -1)
	s.freed[machine] = true
}

// Freed returns the machines, by name, that may have got room since it was called last.
func (s *Set) Freed() []string {
	if len(s.freed) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(s.freed))
	clear(s.freed)
	return names
}

// IsResting reports whether a machine rests now.
func (s *Set) IsResting(machine string) bool { return s.troubles.Rests(machine, s.now.Boot) }

// AllResting reports whether there are machines, and all of them rest.
func (s *Set) AllResting() bool {
	return len(s.order) > 0 && !slices.ContainsFunc(s.order, func(name string) bool { return !s.IsResting(name) })
}

// Resting says why nothing starts at this site, if all of its machines rest; "" if one works.
func (s *Set) Resting() string {
	if !s.AllResting() {
		return ""
	}
	return "machine " + s.troubles.Of("", s.now.Boot)
}

// NoRoom returns why an assignment cannot be started on its machine now, with the class
// of its decline; "" if there is room: home runs may have taken it while the assignment
// was on its way.
func (s *Set) NoRoom(as *fsm.Assignment) (class trouble.DeclineClass, why string) {
	m, ok := s.byName[as.Machine]
	switch {
	case !ok:
		return trouble.DeclinedGone, fmt.Sprintf("machine %s is gone", as.Machine)
	case s.IsResting(as.Machine):
		return trouble.DeclinedTrouble, "machine " + s.troubles.Text(as.Machine, s.now.Boot)
	case !m.hasSlot(s.used.tasks[as.Machine]):
		return trouble.DeclinedBusy, fmt.Sprintf("%s runs %d tasks, as many as it may", as.Machine, m.slots)
	case !fits(s.limits.Open(m.Machine), s.used.all[as.Machine], as.Need): // checked again: others share it
		return trouble.DeclinedBusy, fmt.Sprintf("no room on %s", as.Machine)
	}
	return class, ""
}

// TakesAhead reports whether an assignment may wait for its machine behind as many others that need so much: it would
// fit the machine without others' tasks, and with what runs of the federation all of it is no more than the state may
// assign. What runs counts too: while a wide task waits, little runs, and more may wait.
func (s *Set) TakesAhead(as *fsm.Assignment, queued int, need command.Resources) bool {
	m, home, homeTasks := s.byName[as.Machine], s.used.home[as.Machine], s.used.homeTasks[as.Machine]
	tasks := int64(queued) + s.used.tasks[as.Machine] - homeTasks
	if m.limited && tasks >= layers*(m.slots-homeTasks) {
		return false
	}
	open, _ := s.limits.Exposed(m.Machine, home, 0)
	most := command.Resources{MilliCPU: layers * open.MilliCPU, MemMiB: layers * open.MemMiB, GPU: layers * open.GPU}
	return as.Need.FitsIn(open) && fits(most, need.Plus(s.used.all[as.Machine]).Minus(home), as.Need)
}

// layers is how much of a machine the state may assign, as a multiple of what is offered of it.
const layers = 3

// Unfit returns why a machine does not run such a task, foreign or the site's own; "" if
// it does. The state has matched both; the machine may be another one since.
func (s *Set) Unfit(st *turn.StartEffect, foreign bool) string {
	t, m := &st.Task, s.byName[st.Task.Machine]
	switch {
	case !m.takes(t.Image != ""):
		return fmt.Sprintf("machine %s runs %s only now", t.Machine, runsOf(m.Machine))
	case foreign && t.Network && m.Network == executor.NetworkNone:
		return fmt.Sprintf("machine %s gives other sites' tasks no network (sandbox.network)", t.Machine)
	case len(st.Inputs) > 0 && !m.files, t.Outputs.Wanted() && !m.files:
		return fmt.Sprintf("no files travel with tasks of machine %s", t.Machine)
	case foreign && t.Outputs.Wanted() && t.Outputs.MaxBytes > s.files.most:
		return fmt.Sprintf("its outputs may take %d bytes, and the site lends other sites' tasks %d (data.lend_max)",
			t.Outputs.MaxBytes, s.files.most)
	}
	return ""
}
