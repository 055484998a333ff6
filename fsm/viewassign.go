package fsm

import (
	"cmp"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Assignments returns the live attempts at a site, including those being stopped, by job and task: what its
// broker must be running or ending. Leftovers, which are to be ended, are included; what the site itself
// lost is not. Equal payloads share one copy.
func (s *views) Assignments(name string) []Assignment {
	x := s.byName[name]
	if x == nil {
		return nil
	}
	return s.viewAssignments(s.slotsOf(x, 0))
}

// AssignmentsSince returns the assignments of a site that since an entry are new, are to be stopped, or have
// another bound, by job and task. Reported starts are no change. The cost depends on what has changed, not on
// what runs.
//
// What ended by the site's own Complete or Decline is left out: the site knows. If anything else was taken
// from the site since then, or the entry is not in this state's past, whole is true and all assignments are
// returned: what is not among them is no longer an assignment.
func (s *views) AssignmentsSince(name string, entry uint64) (changed []Assignment, whole bool) {
	x := s.byName[name]
	switch {
	case x == nil:
		return nil, true
	case entry < x.taken || entry > s.index:
		return s.Assignments(name), true
	}
	return s.viewAssignments(s.slotsOf(x, entry)), false
}

// Assignment returns one assignment of a site; false if there is none, or no longer.
func (s *views) Assignment(name string, ref command.AttemptRef) (Assignment, bool) {
	x := s.byName[name]
	if x == nil {
		return Assignment{}, false
	}
	slot, ok := s.findAttempt(&ref, x)
	if !ok {
		slot, ok = s.findLeft(&ref, x)
	}
	if !ok || s.attempts.Get(slot).given {
		return Assignment{}, false
	}
	return s.viewAssignments([]uint64{slot})[0], true
}

// SiteChange returns the number of the last entry that changed what a site must do, that is what Assignments
// returns except for reported starts. It is 0 for an unknown site. After Restore it is the restored entry's
// number.
func (s *views) SiteChange(name string) uint64 {
	if x := s.byName[name]; x != nil {
		return x.changed
	}
	return 0
}

// viewAssignments copies attempts for their site.
func (s *views) viewAssignments(slots []uint64) []Assignment {
	if len(slots) == 0 {
		return nil
	}
	out := make([]Assignment, 0, len(slots))
	var copies map[*payload][]byte // one for all tasks of a job
	if len(slots) > 1 {
		copies = map[*payload][]byte{}
	}
	for _, slot := range slots {
		a := s.attempts.Get(slot)
		if a.given {
			continue
		}
		if a.phase == phaseLeft && a.left.doubt != doubtOpen {
			out = append(out, s.viewLeft(a))
			continue
		}
		j := s.jobs.Get(a.seq)
		data, copied := copies[j.payload]
		if !copied {
			data = j.payload.bytes()
			if copies != nil {
				copies[j.payload] = data
			}
		}
		out = append(out, Assignment{
			AttemptRef: command.AttemptRef{Job: s.idOf(j), Task: a.task, Attempt: a.attempt, Token: a.token},
			Machine:    a.machine.name, Need: j.class.Need, TimeoutMs: j.timeoutMs, OnLoss: j.onLoss,
			Delivers: j.delivers,
			Started:  a.startedMs >= 0 || a.phase == phaseLeft && a.left.startedMs >= 0,
			Stop:     a.stopping(), StopWhy: a.why, BoundMs: a.boundMs, Payload: data,
		})
	}
	slices.SortFunc(out, func(a, b Assignment) int {
		return cmp.Or(
			cmp.Compare(a.Job.Site, b.Job.Site), cmp.Compare(a.Job.Num, b.Job.Num),
			cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt),
		)
	})
	return out
}

// viewLeft copies a leftover for its site, which only has to end it.
func (s *views) viewLeft(a *attempt) Assignment {
	return Assignment{
		AttemptRef: command.AttemptRef{
			Job:  command.JobID{Site: s.sites[a.left.owner].name, Num: a.left.num},
			Task: a.task, Attempt: a.attempt, Token: a.token,
		},
		Machine: a.machine.name, Need: a.left.need, Stop: true, StopWhy: a.why, BoundMs: a.boundMs,
	}
}
