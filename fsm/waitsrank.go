package fsm

import "github.com/cloudshare/cloudshare/sched"

// ranked is a site's account with all that its rank needs. What waiting goes
// on for all is taken once an entry.
func (s *ranking) ranked(x *site) *sched.Account {
	w := s.waits
	if w == nil {
		return &x.account
	}
	w.queues.Count(int(x.id))
	if w.aheadAt != s.index {
		w.aheadAt, w.ahead = s.index, s.waitsAhead()
	}
	p := &w.scratch.Projection // all that such a policy looks at
	*p = x.account.Projection
	p.Fair, p.Scale, p.Ahead, p.Queued = w.queues.Fair(int(x.id)), w.queues.Scale(), w.ahead, w.queued
	return &w.scratch
}

// waitsAhead is what all that waits will go on waiting, by the virtual queue of
// all sites.
func (s *ranking) waitsAhead() sched.Int128 {
	return s.waits.queues.Total().Sub(s.waits.all.At(s.quanta(s.time)))
}

// accounts returns a function that is ranked for those who only read, as of now.
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

// EffectivePolicy is the policy that counts in a federation of so many sites that
// chose one: see State.Policy.
func EffectivePolicy(chosen string, sites int) string { return sched.Effective(chosen, sites) }

// Policy is the policy that counts: the parameters' one, or what takes its place
// with so many sites (sched.Effective).
func (s *ranking) Policy() string {
	if s.waits != nil {
		return s.waits.queues.Policy()
	}
	return s.params.Policy
}
