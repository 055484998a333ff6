package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/sched"
)

// CanUse says whether the federation can go by a policy now. Errors name what
// stands against it and what to do: ErrPolicyVersion, ErrPolicySites.
func (s *State) CanUse(policy string) error {
	if s.version < projectedVersion && sched.IsProjected(policy) {
		return fmt.Errorf("%w: %s needs apply version %d and the federation goes by %d, which its lead raises once every site's broker knows the newer: upgrade them",
			ErrPolicyVersion, policy, projectedVersion, s.version)
	}
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

// renewWaits has the first entry of lentVersion begin anew: what was counted before it
// rests on what sites said of themselves.
func (s *State) renewWaits() {
	if s.waits != nil && s.waits.least == 0 && s.version >= lentVersion {
		s.dropWaits()
	}
}

// beginWaits begins counting if the policy is one by projected waits, with what is
// there now. It costs as much as there are jobs, so it is done once an entry, after
// all commands, however many of them changed the policy.
func (s *State) beginWaits() {
	if s.waits != nil || !sched.IsProjected(s.params.Policy) {
		return
	}
	now, least := s.quanta(s.time), int64(0)
	if s.version >= lentVersion {
		least = 1
	}
	s.waits = &waits{since: now, least: least, queues: sched.NewCoalitions(sched.Effective(s.params.Policy, len(s.sites)), least, now, s.epoch)}
	for _, x := range s.sites {
		s.noteJoined(x)
		s.noteCores(x)
	}
	var seqs []uint64
	for seq, j := range s.jobs.all() {
		if !j.over() {
			seqs = append(seqs, seq)
		}
	}
	for _, seq := range seqs {
		s.releaseAnew(seq)
	}
}

// releaseAnew enters a job that was there when the policy began: what waits is
// released now, and so is what is left of what runs.
func (s *State) releaseAnew(seq uint64) {
	j := s.mutJob(seq)
	x, width := s.sites[j.owner], widthOf(j.class.need)
	j.booked = s.lengthOf(x, j.timeoutMs)
	s.countWaiting(j)
	if n := int64(j.waiting()); n > 0 && x.present() {
		s.note(x).New.Add(n*width, j.booked, 0)
	}
	for _, slot := range s.liveOf(seq) {
		left := max(1, j.booked-(s.waits.since-s.quanta(s.attempts.get(slot).assignedMs)))
		s.expect(slot, left)
		s.note(x).New.Add(width, left, 0)
	}
}

// countWaiting counts a job's waiting tasks.
func (s *State) countWaiting(j *job) {
	x, fresh := s.sites[j.owner], int64(j.waiting())
	if j.tasks != nil {
		fresh -= int64(j.tasks.back.n)
		for b := range j.tasks.back.all() {
			s.waitMore(x, j, 1, b.queuedMs)
		}
	}
	s.waitMore(x, j, fresh, j.queuedMs)
}
