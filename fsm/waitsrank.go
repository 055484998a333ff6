package fsm

import "github.com/cloudshare/cloudshare/sched"

// ranked returns a site's account with everything that its rank needs. What all that waits will go on waiting
// is computed once an entry.
func (s *ranking) ranked(x *site) *sched.Account {
	w := s.waits
	if w == nil {
		return &x.account
	}
	w.queues.Count(int(x.id))
	if w.aheadAt != s.index {
		w.aheadAt, w.ahead = s.index, s.waitsAhead()
	}
	p := &w.scratch.Projection // all that such a policy reads
	*p = x.account.Projection
	p.Fair, p.Scale, p.Ahead, p.Queued = w.queues.Fair(int(x.id)), w.queues.Scale(), w.ahead, w.queued
	return &w.scratch
}

// waitsAhead returns how long everything that waits will go on waiting, by the virtual queue of all sites.
func (s *ranking) waitsAhead() sched.Int128 {
	return s.waits.queues.Total().Sub(s.waits.all.At(s.quanta(s.time)))
}

// accounts returns a function like ranked for callers that only read, as of now.
func (s *views) accounts() func(x *site) *sched.Account {
	w := s.waits
	if w == nil {
		return func(x *site) *sched.Account { return &x.account }
	}
	fair, ahead := w.queues.Shares(), s.waitsAhead()
	return func(x *site) *sched.Account {
		a := x.account
		p := &a.Projection
		p.Fair, p.Scale, p.Ahead, p.Queued = fair[x.id], w.queues.Scale(), ahead, w.all.Units
		return &a
	}
}

// EffectivePolicy returns the policy that applies in a federation of that many sites that chose one: see
// State.Policy.
func EffectivePolicy(chosen string, sites int) string { return sched.Effective(chosen, sites) }

// Policy returns the policy that applies: that of the parameters, or the one that replaces it with that many
// sites (sched.Effective).
func (s *ranking) Policy() string {
	if s.waits != nil {
		return s.waits.queues.Policy()
	}
	return s.params.Policy
}
