package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// HostileLeader orders all entries of a run, for its own site's good. It cannot say anything for another site, since
// each signs what it proposes, nor match differently, since every replica does: it chooses the order within an entry,
// and the entry.
type HostileLeader struct {
	// Site is its own: what that proposes is the first of each entry, and in the next one always.
	Site int
	// Withhold is for how many seconds it lays aside what it withholds of all others; then it orders that.
	Withhold int64
	// Ends: it withholds reports of ended tasks, too, which free machines; else submissions only.
	Ends bool
	// Selective: it withholds submissions only while tasks of its own wait, and ends only while none does, so that a
	// machine is its own's if one comes in time; Withhold is then the longest.
	Selective bool
	// Variants: of each entry it tries so many, and takes the one that is best for it (grind.go): which of what it
	// would withhold stands in it. 0 = it tries none.
	Variants int
	// Lends: of variants that give its tasks as many cores it takes the one in which its machines run more of others'
	// tasks, which count as its contribution; else the one in which they stay free for its own.
	Lends bool
}

// MaxWithhold is an hour: then the turn to lead is another site's, which orders what it is sent again.
const MaxWithhold = 3600

// check names the first thing about the leader that cannot be played.
func (l *HostileLeader) check(sites int) error {
	switch {
	case l == nil:
		return nil
	case l.Site < 0 || l.Site >= sites:
		return fmt.Errorf("%w: site %d of %d leads", ErrBadCase, l.Site, sites)
	case l.Withhold < 0 || l.Withhold > MaxWithhold:
		return fmt.Errorf("%w: the leader withholds for %d seconds, want 0 to %d", ErrBadCase, l.Withhold, MaxWithhold)
	case l.Variants < 0 || l.Variants > MaxVariants || l.Variants > 0 && (l.Withhold == 0 || l.Selective):
		return fmt.Errorf("%w: the leader tries %d variants, want at most %d, and some time to withhold", ErrBadCase, l.Variants, MaxVariants)
	}
	return nil
}

// mayWithhold reports whether nobody knows, before an entry, if a site's submissions stand in it.
func (l *HostileLeader) mayWithhold(site int) bool {
	return l != nil && l.Withhold > 0 && site != l.Site
}

// withholds reports whether it would lay a site's command aside, while tasks of its own wait or while none does.
func (l *HostileLeader) withholds(site int, body command.Body, ownWait bool) bool {
	if !l.mayWithhold(site) {
		return false
	}
	switch body.(type) {
	case *command.Submit:
		return !l.Selective || ownWait
	case *command.Complete:
		return l.Ends && (!l.Selective || !ownWait)
	}
	return false
}

// withheld reports whether a site's command is, now.
func (p *player) withheld(site int, body command.Body) bool {
	l := p.c.Leader
	if l != nil && l.Variants > 0 {
		return p.aside&(1<<site) != 0 && l.withholds(site, body, true)
	}
	return l != nil && l.withholds(site, body, p.sites[l.Site].waits > 0)
}

// sequence returns the sites in the order in which their proposals stand in an entry.
func (c *Case) sequence() (sites []int) {
	for i := range c.Cores {
		sites = append(sites, i)
	}
	if l := c.Leader; l != nil {
		sites = slices.Insert(slices.Delete(sites, l.Site, l.Site+1), 0, l.Site)
	}
	return sites
}

// laidAside is a command that the leader withholds.
type laidAside struct {
	until int64 // second
	cmd   command.Command
	// known: brokers know that it stands in the next entry.
	known bool
}

// pass leaves of what a site proposes what the leader orders now, behind what it has withheld long enough. A site's
// commands of a kind stay in order.
func (s *siteShell) pass() {
	l := s.p.c.Leader
	if l == nil {
		return
	}
	s.comeOut()
	s.passed = s.passed[:0]
	s.aside = slices.DeleteFunc(s.aside, func(a laidAside) bool {
		if a.known {
			s.passed = append(s.passed, a.cmd)
		}
		return a.known
	})
	for _, cmd := range s.proposed {
		if s.p.withheld(s.at, cmd.Body) {
			s.aside = append(s.aside, laidAside{until: s.p.now + l.Withhold, cmd: cmd})
			s.p.out.Withheld++
			continue
		}
		if l.mayWithhold(s.at) {
			s.makeKnown(cmd.Body)
		}
		s.passed = append(s.passed, cmd)
	}
	s.proposed, s.passed = s.passed, s.proposed
}

// nextRelease returns when the leader orders something that it has laid aside: math.MaxInt64 if there is nothing.
func (p *player) nextRelease() int64 {
	t := int64(math.MaxInt64)
	for _, s := range p.sites {
		if len(s.aside) > 0 {
			t = min(t, s.aside[0].until)
		}
	}
	return t
}

// withholds reports whether something is laid aside.
func (p *player) withholds() bool { return p.nextRelease() != math.MaxInt64 }

// comeOut has brokers know of what stands in the next entry at last: of submissions they must, before tasks arrive.
func (s *siteShell) comeOut() {
	for i := range s.aside {
		a := &s.aside[i]
		stays := s.p.c.Leader.Variants > 0 || s.p.withheld(s.at, a.cmd.Body)
		if a.known || a.until > s.p.now && stays {
			continue
		}
		a.known = true
		s.makeKnown(a.cmd.Body)
	}
}

// makeKnown has brokers know of what is submitted.
func (s *siteShell) makeKnown(body command.Body) {
	submit, ok := body.(*command.Submit)
	if !ok {
		return
	}
	for i := range submit.Jobs {
		s.p.view.published(submit.Jobs[i].Need.MilliCPU/1000, int(submit.Jobs[i].Count))
	}
}
