package fsm

import (
	"fmt"
	"math"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/sched"
)

// Apply executes one entry: it moves the log's time, executes the commands in order, and then matches
// what waits with what is free. It returns one result per command. The entry's number is one more than
// that of the last entry, whatever it holds.
//
// An error means that an apply version is in force that this code does not know (ErrNewVersion), or that it was
// handed a body of its own making that it cannot execute (ErrUnknownCommand). Then the state is unchanged and the node
// must stop. What others had ordered is no reason to: a command that cannot be read is refused at all replicas alike,
// and so is one that only a newer version has.
func (s *State) Apply(b *command.Batch) ([]command.Result, error) {
	if err := s.checkVersion(); err != nil {
		return nil, fmt.Errorf("apply entry %d: %w", s.index+1, err)
	}
	for i := range b.Commands {
		if err := checkKnown(&b.Commands[i]); err != nil {
			return nil, fmt.Errorf("apply entry %d: command %d: %w", s.index+1, i, err)
		}
	}
	s.index++
	s.steps.begin(s.bounds.steps)
	s.earned = s.earned[:0]
	s.roster.BeginEntry()
	still := len(b.Commands) == 0 && s.unfinished()
	resumes := still && s.phase == cut && !s.matchesLater()
	if still {
		s.advanceTerm(b.Term)
	} else {
		s.advance(b.Term, b.Elapsed)
		s.depart() // not while work is left, though parameters may call for it
	}
	s.expire()
	s.steps.ended(0)
	results := make([]command.Result, len(b.Commands))
	by := authors{bundles: b.Bundles}
	for i := range b.Commands {
		by.next()
		results[i] = s.execute(&by, &b.Commands[i], b)
		s.steps.ended(b.Commands[i].Body.Kind())
	}
	s.countMotions()
	s.indexSites()
	s.countReturned()
	s.steps.spare(s.bounds.steps)
	if s.founded != 0 {
		s.finishEntry(still, resumes)
	}
	s.steps.ended(0)
	s.version, s.raised = max(s.version, s.raised), 0
	return results, nil
}

// Ordered returns what Apply is to execute of an entry, of what command.DecodeBatch returned for it: nothing, if that
// failed, since all who go by the version in force fail alike. But as long as there is no federation here, the log is
// not one of this version, and the error is the caller's.
func (s *clock) Ordered(b *command.Batch, unread error) (*command.Batch, error) {
	switch {
	case unread == nil:
		return b, nil
	case s.founded == 0:
		return nil, fmt.Errorf("decode entry %d: %w", s.index+1, unread)
	}
	return &command.Batch{}, nil
}

// finishEntry does an entry's work after its commands, as far as the bound of steps allows. still says that the
// entry has no commands and is the same moment as the last one; resumes says that it continues that
// entry's match, with nothing done before.
func (s *State) finishEntry(still, resumes bool) {
	s.applyNewParams()
	s.workOff()
	s.beginWaits()
	s.flushWaits(resumes)
	switch {
	case s.matchesLater():
		if s.phase == matched {
			s.phase = owed
		}
	case still && s.phase == matched: // only the search for reservations was left
		s.reserve()
	case s.match() && s.matchAhead():
		s.reserve()
	}
	s.retain()
}

// checkKnown returns an error for a command that this version cannot execute.
func checkKnown(c *command.Command) error {
	switch c.Body.(type) {
	case command.Unreadable, *command.Genesis, *command.Register, *command.Submit, *command.Offer, *command.Started,
		*command.Complete, *command.Decline, *command.Cancel, *command.Usage, *command.SiteLost,
		*command.Forget, *command.SetParams, *command.Suspect, *command.Addresses, *command.Leave,
		*command.Bound, *command.Raise, *command.Recover, *command.Close,
		*command.Invite, *command.Revoke, *command.Admit, *command.Rekey, *command.Motion, *command.Vote,
		*command.GossipKey, *command.Renice, *command.Orphans, *command.Lead,
		*command.Deliver, *command.Ahead, *command.HandBack, *command.Release, *command.Prioritize:
		return nil
	}
	return fmt.Errorf("%w: %T from site %q", ErrUnknownCommand, c.Body, c.ID.Site)
}

// advance moves the log's time by the leader's clock (D3). Before genesis time does not move.
func (s *clock) advance(term uint64, elapsed int64) {
	if term < s.term {
		return
	}
	s.advanceTerm(term)
	if s.founded == 0 || elapsed <= 0 || elapsed > math.MaxInt64/2 {
		return
	}
	s.time = max(s.time, min(s.termBase+elapsed, s.time+command.MaxStep, sched.MaxNow))
}

// advanceTerm records a new leader's term, whose clock counts from now.
func (s *clock) advanceTerm(term uint64) {
	if term > s.term {
		s.term, s.termBase, s.leader = term, s.time, ""
	}
}

// execute returns a command's result: the recorded one for a repeat, otherwise that of executing it. by stands at the
// bundle that it is in. What is not its site's word leaves no trace.
func (s *State) execute(by *authors, c *command.Command, of *command.Batch) command.Result {
	code := command.OutOfRange
	if c.Validate() == nil && s.allows(c.Body) {
		code = s.authorize(by, c)
	}
	if code != command.OK {
		return command.Result{Code: code, Index: s.index}
	}
	switch body := c.Body.(type) {
	case *command.Genesis:
		return s.genesis(c.ID.Site, body, of.Elapsed)
	case *command.Register:
		return s.register(c.ID.Site, body)
	case *command.Lead:
		return command.Result{Code: s.lead(c.ID.Site, body), Index: s.index}
	case *command.Recover:
		return s.recover(c.ID.Site, body, of.Term)
	}
	x, r, done := s.admit(c)
	if done {
		return r
	}
	r = s.dispatch(x, c.Body)
	r.Index = s.index
	x.record(s.epoch, c.ID.Seq, r)
	return r
}

// allows reports whether the version in force has what a command says. Those who know only older versions cannot read
// what it has not: it must leave no trace here either, not even that it was refused.
func (s *clock) allows(b command.Body) bool { return s.founded == 0 || command.Since(b) <= s.version }

// dispatch executes a command of a registered site for the first time.
func (s *State) dispatch(x *site, body command.Body) command.Result {
	if body.Kind().OfLeader() && !s.isLeader(x) {
		return command.Result{Code: command.NotLeader}
	}
	switch c := body.(type) {
	case *command.Submit:
		return s.submit(x, c)
	case *command.Offer:
		return s.offer(x, c)
	case *command.Started:
		return s.started(x, c)
	case *command.Complete:
		return s.complete(x, c)
	case *command.Orphans:
		return s.orphans(x, c)
	case *command.Deliver:
		return s.deliver(x, c)
	case *command.Decline:
		return s.decline(x, c)
	case *command.Ahead:
		x.idleMs = c.IdleMs
	case *command.HandBack:
		s.handBack(x, c)
	case *command.Cancel:
		return s.cancel(x, c)
	case *command.Usage:
		return s.usage(x, c)
	case *command.SiteLost:
		return s.siteLost(c)
	case *command.Forget:
		return s.forget(x, c)
	case *command.SetParams:
		if s.roster.Founded() {
			return command.Result{Code: command.NeedsMotion}
		}
		return s.setParams(&c.Params)
	case *command.Suspect:
		return s.suspect(c)
	case *command.Addresses:
		x.http, x.peer, x.gossip = c.HTTP, c.Peer, c.Gossip
	case *command.Leave:
		s.away(x, Left)
	case *command.Close:
		x.closed = c.Why
	case *command.Bound:
		s.bound(x, c)
	case *command.Raise:
		return s.raise(c)
	case *command.Renice:
		s.renice(x, c)
		return command.Result{}
	case *command.Prioritize:
		s.prioritize(x, c)
		return command.Result{}
	case *command.Release:
		return s.release(x, c)
	}
	return s.dispatchRoster(x, body)
}

// genesis founds the federation. A repeat of the same genesis succeeds.
func (s *State) genesis(founder string, c *command.Genesis, elapsed int64) command.Result {
	switch {
	case s.founded != 0 && s.federation == c.Federation:
		return command.Result{Index: s.founded}
	case s.founded != 0:
		return command.Result{Code: command.AlreadyFounded, Index: s.index}
	}
	s.founded, s.federation, s.createdMs, s.seed = s.index, c.Federation, c.CreatedMs, c.Seed
	s.version = command.FirstVersion
	s.termBase = -max(0, min(elapsed, math.MaxInt64/2)) // time 0 is now
	s.useParams(c.Params)
	if c.Founder != (signature.Key{}) {
		s.roster.Found(founder, c.Founder, s.moment())
		s.leader = strings.Clone(founder)
	}
	s.tellFederation(EventFounded)
	return command.Result{Index: s.index}
}

// canSetParams says why parameters cannot be put in force.
func (s *fleet) canSetParams(to *command.Params) command.Code {
	p := &s.params
	if to.QuantumMs != p.QuantumMs || to.LeaseMs != p.LeaseMs || to.MarginMs != p.MarginMs {
		return command.BadParams
	}
	if most := sched.MaxSites(to.Policy); to.Policy != p.Policy && most > 0 && len(s.sites) > most {
		return command.PolicySites
	}
	return command.OK
}

// setParams puts parameters in force.
func (s *State) setParams(to *command.Params) command.Result {
	if code := s.canSetParams(to); code != command.OK {
		return command.Result{Code: code}
	}
	s.useParams(*to)
	if to.ReserveAfterMs == 0 {
		s.search = nil
		s.unholdFor(nil)
	}
	s.tellFederation(EventParamsChanged)
	return command.Result{}
}

// useParams puts valid parameters in force.
func (s *State) useParams(p command.Params) {
	changed := s.params.Policy != p.Policy
	s.params, s.newParams = p, true
	s.policy, _ = sched.New(p.Policy, p.Running) // Validate has checked it
	if changed {
		s.dropWaits()
	}
}

// applyNewParams recomputes what depends on the parameters, once an entry, however often it set them.
func (s *State) applyNewParams() {
	if !s.newParams {
		return
	}
	s.newParams, s.recrowd = false, true
	for _, x := range s.sites {
		s.setShare(x)
	}
	s.plan()
}
