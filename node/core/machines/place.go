package machines

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// filter asks one machine after the other whether it is one for a job's tasks. The
// machines of a handler have equal labels, and to compare those with the selectors
// means to read both: that is done once for all that stand together.
type filter struct {
	js     *command.JobSpec
	but    []string       // handlers that are not asked
	labels command.Labels // of the last machine that was asked
	asked  bool
	admits bool // if asked: what the job says of labels
}

// at reports whether the machine is one for the job's tasks, whatever room it has.
func (q *filter) at(m machine) bool {
	if !m.takes(q.js.Image) || m.limited && m.slots == 0 {
		return false
	}
	if slices.Contains(q.but, m.handler) {
		return false
	}
	if !q.asked || q.labels != m.labels {
		q.labels, q.asked, q.admits = m.labels, true, q.js.Admits(m.labels)
	}
	return q.admits
}

// Place finds a machine for every task of a job, all at once; nil if there is
// no room now. but are the handlers that are not asked.
func (s *Set) Place(js *command.JobSpec, but ...string) []string {
	var total int64
	for _, m := range s.byName {
		total += m.MilliCPU
	}
	if int64(js.Count) > total/max(1, js.Need.MilliCPU) {
		return nil
	}
	places := make([]string, 0, js.Count)
	suits := filter{js: js, but: but}
	for _, name := range s.order {
		m := s.byName[name]
		if !suits.at(m) || s.IsResting(name) {
			continue
		}
		total, used, tasks := command.Resources(m.Resources), s.used.all[name], s.used.tasks[name]
		for len(places) < int(js.Count) && fits(total, used, js.Need) && m.hasSlot(tasks) {
			used = plus(used, js.Need)
			tasks++
			places = append(places, name)
		}
	}
	if len(places) < int(js.Count) {
		return nil
	}
	return places
}

// FitsEmpty reports whether some machine would take a task of the job if it
// were idle; but are the handlers that are not asked.
func (s *Set) FitsEmpty(js *command.JobSpec, but ...string) bool {
	suits := filter{js: js, but: but}
	return slices.ContainsFunc(s.order, func(name string) bool {
		m := s.byName[name]
		return suits.at(m) && fits(command.Resources(m.Resources), command.Resources{}, js.Need)
	})
}
