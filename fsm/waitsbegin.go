package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/sched"
)

// CanUse returns an error if the federation cannot use a policy now. The error says why not and what to do:
// ErrPolicySites.
func (s *fleet) CanUse(policy string) error {
	if most := sched.MaxSites(policy); most > 0 && len(s.sites) > most {
		return fmt.Errorf("%w: %s takes at most %d sites, %d have registered: choose %s",
			ErrPolicySites, policy, most, len(s.sites), sched.Effective(policy, len(s.sites)))
	}
	return nil
}

// dropWaits drops what was counted under another policy.
func (s *State) dropWaits() {
	if s.waits == nil {
		return
	}
	for _, x := range s.sites {
		x.waits, x.account.Projection = waitSite{}, sched.Projection{}
	}
	s.waits, s.prolonging = nil, false
}

// beginWaits begins counting, with what exists now, if the policy uses projected waits. The cost grows with
// the number of jobs and live attempts, so it is done once an entry, after all commands, however many of them
// changed the policy. What is too much for one entry is left to the next, in which nothing is matched before.
func (s *State) beginWaits() {
	if s.waits == nil && sched.IsProjected(s.params.Policy) {
		s.newWaits()
	}
	if s.beginning() && len(s.chores) == 0 && !s.expiring() && s.enterJobs() {
		s.waits.next, s.waits.limit = taskKey{}, 0
	}
}

// newWaits begins counting with nothing.
func (s *jobTable) newWaits() {
	now := s.quanta(s.time)
	policy := sched.Effective(s.params.Policy, len(s.sites))
	s.waits = &waits{
		due: dueHeap(), since: now, limit: s.nextSeq, queues: sched.NewCoalitions(policy, leastCores, now, s.epoch),
	}
	for _, x := range s.sites {
		s.noteJoined(x)
		s.noteCores(x)
	}
}

// enterJobs enters what existed when the policy began. It returns false if more is left.
func (s *jobTable) enterJobs() bool {
	w, first := s.waits, true
	for seq := range s.jobs.From(w.next.seq) {
		if seq >= w.limit {
			break
		}
		if !first && s.steps.spent() {
			return false
		}
		first = false
		if seq != w.next.seq {
			w.next = taskKey{seq: seq}
		}
		s.steps.used += stepLook
		if !s.jobs.Get(seq).over() && !s.enterJob(seq) {
			return false
		}
		w.next = taskKey{seq: seq + 1}
	}
	return true
}

// enterJob enters a job that existed when the policy began: what waits is released now, and so is the
// remaining part of what runs. It returns false if more of the job is left.
func (s *jobTable) enterJob(seq uint64) bool {
	w := s.waits
	if w.next.task == 0 {
		s.enterWaiting(seq)
		w.next.task = 1
	}
	for j, first := s.jobs.Get(seq), true; w.next.task <= j.next; first = false {
		if !first && s.steps.spent() {
			return false
		}
		s.steps.used += stepLook
		task := w.next.task - 1
		if slot, ok := s.live[taskKey{seq, task}]; ok {
			s.enterLive(slot)
		} else if to, ok := j.standsFrom(task); ok {
			task = min(to, j.next) - 1
		}
		w.next.task = task + 2
	}
	return true
}

func (s *jobTable) enterWaiting(seq uint64) {
	j := s.mutJob(seq)
	s.steps.used += stepBegin + uint64(j.tasks.back().Len()+j.tasks.released().Len())*stepLook
	x := s.sites[j.owner]
	j.booked = s.lengthOf(x, j.timeoutMs)
	s.countWaiting(j)
	if n := int64(j.waiting()); n > 0 && x.present() {
		s.changeOf(x).New.Add(n*widthOf(j.class.Need), j.booked, 0)
	}
}

func (s *jobTable) enterLive(slot uint64) {
	s.steps.used += stepProlong
	a := s.attempts.Get(slot)
	j := s.jobs.Get(a.seq)
	left := max(1, j.booked-(s.waits.since-s.quanta(a.assignedMs)))
	s.expect(slot, left)
	s.changeOf(s.sites[j.owner]).New.Add(widthOf(j.class.Need), left, 0)
}

// countWaiting counts a job's waiting tasks.
func (s *ranking) countWaiting(j *job) {
	x, left := s.sites[j.owner], int64(j.waiting())
	for b := range j.tasks.back().All() {
		s.waitMore(x, j, 1, b.queuedMs)
		left--
	}
	for v := range j.tasks.released().All() {
		s.waitMore(x, j, int64(v.to-v.from), v.queuedMs)
		left -= int64(v.to - v.from)
	}
	s.waitMore(x, j, left, j.queuedMs)
}
