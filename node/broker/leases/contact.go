package leases

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

// A broker that was killed shows within moments what its lease shows after three quarters: its connection ends, and its
// host refuses the next one. So the leader dials a site in doubt, and suspects it if it cannot be reached for a while.
// Doubts come from anywhere, gossip's word included: they cost a dial. Only the leader's own dials count against a
// site, and a renewal ends all of it. DESIGN.md of node/broker has the cases.

const (
	// goneFor is how long dials must fail, one after the other: a broker that restarts listens again sooner.
	goneFor = 2 * time.Second
	// dialEvery is the least time between the beginnings of two dials of a site in doubt.
	dialEvery = 500 * time.Millisecond
	// DialPatience bounds a dial: two round trips of half a second.
	DialPatience = time.Second
	// maxDials bounds those under way.
	maxDials = 32
)

// contact is what the leader knows of its way to an incarnation of a site, beside what it has granted.
type contact struct {
	// heard is when a renewal came last, ended when a connection of the site ended last, missed since when gossip
	// misses it, and answered when a dial found it last; zero = never in this term, or it does not.
	heard, ended, missed, answered time.Time
	// failing is when the first of the dials began that have failed since, and tried when the last one did.
	failing, tried time.Time
	refused        bool // all that have failed since were refused
	parted         bool // it has told gossip that its broker stops
	dialing        bool // one is under way
	// left: it was found to be gone. Invariant: until it renews.
	left bool
}

// hear notes a renewal, granted or not: the broker runs, and finds the leader.
func (c *contact) hear(now time.Time) {
	c.heard, c.left = now, false
	c.restart()
}

// restart has failed dials count no more.
func (c *contact) restart() { c.failing, c.tried = time.Time{}, time.Time{} }

// Word is what gossip says of a site.
type Word uint8

// The words; of a site that gossip has never seen it says nothing.
const (
	Nothing Word = iota // it is seen, or was never
	Missed              // it does not answer
	Parted              // its broker said that it stops, and leaves its tasks to their supervisors
)

// note notes what gossip says of the site.
func (c *contact) note(gossip Word, now time.Time) {
	c.parted = gossip == Parted
	switch {
	case gossip != Missed:
		c.missed = time.Time{}
	case c.missed.IsZero():
		c.missed = now
	}
}

// isMissed reports whether gossip has missed the site for as long as it has not renewed.
func (c *contact) isMissed() bool { return c.missed.After(c.heard) }

// isDoubted reports whether the site may be gone: gossip misses it, its connection has ended, or this leader has never
// heard of it.
func (c *contact) isDoubted() bool {
	return c.isMissed() || c.ended.After(later(c.heard, c.answered)) || c.heard.IsZero() && c.answered.IsZero()
}

// isDue reports whether the site is to be dialed now.
func (c *contact) isDue(now time.Time) bool {
	return !c.dialing && !c.left && c.isDoubted() && now.Sub(later(c.tried, c.answered)) >= dialEvery
}

// isUnreachable reports whether the leader cannot reach the site: it is refused, or it gets no answer and gossip misses
// it as well. One that has said that it stops may be restarting, however long that takes.
func (c *contact) isUnreachable() bool {
	if c.parted || c.failing.IsZero() || !c.isDoubted() {
		return false
	}
	return c.tried.Sub(c.failing) >= goneFor && (c.refused || c.isMissed())
}

// isGone reports whether a site is suspected for what dials have found, and adds to v that it was just found. That is
// once a lease at most, so that one that comes and goes on purpose leaves few entries. REQUIRES: w.mu held.
func (w *Tracker) isGone(v *core.Verdicts, r coord.Renewal, s *watched, lease time.Duration, now time.Time) bool {
	if s.left || !s.isUnreachable() {
		return s.left
	}
	if last := w.gone[r.Site]; !last.IsZero() && now.Sub(last) < lease {
		return false
	}
	w.gone[r.Site], s.left = now, true
	v.Gone = append(v.Gone, r)
	return true
}

var _ coord.Disconnected = (*Tracker)(nil)

// Disconnected implements coord.Disconnected: the site may have ended.
func (w *Tracker) Disconnected(site string) {
	_, incarnation := w.siteState(site)
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sites[coord.Renewal{Site: site, Incarnation: incarnation}]; s != nil {
		s.ended = w.now()
	}
}

// Dial is one that is due, of a site in doubt.
type Dial struct {
	Of   coord.Renewal
	Addr string
	of   *watched // in the term in which it began
}

// Dials returns what is to be dialed now, each for DialPatience, and told by Dialed; self is this broker's own site.
func (w *Tracker) Dials(sites []fsm.SiteView, self string) (due []Dial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.term == 0 || w.since.IsZero() {
		return nil
	}
	for i := range sites {
		x := &sites[i]
		if x.ID == self || x.Peer == "" || !isPresent(x) || w.dials >= maxDials {
			continue
		}
		r := coord.Renewal{Site: x.ID, Incarnation: x.Incarnation}
		if s := w.site(r); s.isDue(w.now()) {
			s.dialing = true
			w.dials++
			due = append(due, Dial{Of: r, Addr: x.Peer, of: s})
		}
	}
	return due
}

// Dialed notes how a dial ended that began at a moment; nil: the site answers.
func (w *Tracker) Dialed(d Dial, began time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sites[d.Of]
	if s != d.of { // of another term, or before this broker led it again
		return
	}
	s.dialing = false
	w.dials--
	switch {
	case err == nil:
		s.answered = w.now()
		s.restart()
	case began.Before(later(s.heard, w.resumed)): // it says nothing of now
	case isRefused(err), isSilent(err):
		if s.failing.IsZero() {
			s.failing, s.refused = began, true
		}
		s.tried, s.refused = began, s.refused && isRefused(err)
	default: // this broker's own trouble
		s.restart()
		s.tried = began
	}
}

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// isSilent reports whether nobody answered where the dial went.
func isSilent(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH)
}
