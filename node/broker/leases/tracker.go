// Package leases is the leader's side of the leases: who has renewed, and who is silent for
// so long that its loss is proposed.
package leases

import (
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

// Tracker is the leader's side of the leases: it notes renewals, and proposes the
// loss of a site that has not renewed for a lease and the margin. It decides
// nothing while its broker is not the leader, and after a change of leader it first
// waits a full lease and margin: the former leader may have granted a lease in
// its last moment.
//
// Time is the process's monotonic clock, which stands still while the machine
// is suspended: the leader then waits longer, never shorter.
type Tracker struct {
	mu   sync.Mutex
	term uint64 // it watches in this term; 0 = not the leader
	// since is when the barrier of the term was applied; zero = not yet.
	since time.Time
	// judgedAt is when it looked at the sites last in this term; zero = not yet.
	judgedAt time.Time
	// resumed is when a pause of this broker ended last, see discountOwnPause.
	resumed time.Time
	sites   map[coord.Renewal]*watched
	// gone is when a site was found to be gone last in this term, see contact.go.
	gone map[string]time.Time
	// dials is how many are under way in this term.
	dials int
	now   func() time.Time
	// siteState reads the applied state: where a site stands, and its incarnation.
	siteState func(site string) (fsm.SiteState, uint64)
}

// watched is one incarnation of a site as the leader sees it.
type watched struct {
	renewed time.Time // last renewal that was granted, or when it was first seen
	// lossProposed: its loss was proposed in this term. Invariant: nothing is
	// granted to it any more in this term.
	lossProposed bool
	// said is when its loss was logged last; zero = never.
	said time.Time
	contact
}

// repeatEvery is how often the log repeats what does not change.
const repeatEvery = 10 * time.Second

var _ coord.Grantor = (*Tracker)(nil)

// NewTracker returns a tracker of a broker that does not lead. siteState reads the applied
// state: where a site stands, and its incarnation.
func NewTracker(now func() time.Time, siteState func(string) (fsm.SiteState, uint64)) *Tracker {
	return &Tracker{
		now: now, sites: map[coord.Renewal]*watched{}, gone: map[string]time.Time{}, siteState: siteState,
	}
}

// SetTerm begins to watch in a term, or stops (term 0).
func (w *Tracker) SetTerm(term uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beginTerm(term)
}

// beginTerm begins a term with nothing known. REQUIRES: w.mu held.
func (w *Tracker) beginTerm(term uint64) {
	if w.term != term {
		w.term, w.since, w.judgedAt, w.dials = term, time.Time{}, time.Time{}, 0
		clear(w.sites)
		clear(w.gone)
	}
}

// Barrier notes that an entry of the term was applied: the wait begins.
func (w *Tracker) Barrier(term uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.term != term || !w.since.IsZero() {
		return
	}
	w.since = w.now()
	if mutate.On("no-lead-change-wait") {
		w.since = w.since.Add(-time.Hour)
	}
}

// Waiting reports whether the term's barrier is still to come.
func (w *Tracker) Waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.term != 0 && w.since.IsZero()
}

// Received implements coord.Grantor. A later leader knows nothing of those whose
// loss a former one ordered, but the state does: it is applied up to an entry of the
// term. An incarnation that the state does not know yet may be registered by an
// entry under way.
func (w *Tracker) Received(r coord.Renewal, term uint64) bool {
	standing := w.standing(r)
	if standing == superseded {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if term > w.term { // the log knows of the new leader first
		w.beginTerm(term)
	}
	if w.term != term || term == 0 {
		return false
	}
	if standing == current { // of those that the state does not know there may be any number
		w.site(r).hear(w.now())
	}
	s := w.sites[r]
	return s == nil || !s.lossProposed
}

// Confirmed implements coord.Grantor. An incarnation that the state still does not
// know is refused: the site asks again soon.
func (w *Tracker) Confirmed(r coord.Renewal, term uint64) bool {
	if w.standing(r) != current {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.term != term || term == 0 {
		return false
	}
	s := w.site(r)
	if s.lossProposed {
		return false
	}
	s.renewed = w.now()
	return true
}

// registrationState is what the state says of an incarnation.
type registrationState uint8

const (
	current    registrationState = iota // it is the site's, and neither lost nor left
	unknown                             // the state does not know it yet
	superseded                          // it is lost, has left, or a later one is registered
)

func (w *Tracker) standing(r coord.Renewal) registrationState {
	state, incarnation := w.siteState(r.Site)
	switch {
	case mutate.On("no-state-check-of-renewals"):
		return current
	case incarnation < r.Incarnation:
		return unknown
	case r.Incarnation == 0 || incarnation > r.Incarnation || state == fsm.SiteGone || state == fsm.Left:
		return superseded
	}
	return current
}

// site returns what is known of an incarnation. REQUIRES: w.mu held.
func (w *Tracker) site(r coord.Renewal) *watched {
	s := w.sites[r]
	if s == nil {
		s = &watched{renewed: w.now()}
		if mutate.On("no-lead-change-wait") {
			s.renewed = w.since
		}
		w.sites[r] = s
	}
	return s
}

// discountOwnPause has a pause of this broker count as nobody's silence: while it did not
// look, it did not hear either (stopped, or starved of processor time). One that
// is the only voter stays leader over any pause, and proposed the loss of all sites by it. What
// renewed since is as it was. REQUIRES: w.mu held.
func (w *Tracker) discountOwnPause(now time.Time, t node.Timing) {
	pause := now.Sub(w.judgedAt)
	if w.judgedAt.IsZero() || pause <= max(2*core.TickEvery, t.Lease/4) || mutate.On("no-own-gap") {
		return
	}
	shift := func(at time.Time) time.Time {
		if at = at.Add(pause); at.After(now) {
			return now
		}
		return at
	}
	w.resumed, w.since = now, shift(w.since)
	for _, s := range w.sites {
		s.renewed = shift(s.renewed)
		s.restart() // a dial that was under way says nothing
	}
}

// JudgeSites decides which sites of the state are suspected or lost. A site that gossip misses is dialed, and suspected
// if it cannot be reached, but not lost sooner.
func (w *Tracker) JudgeSites(sites []fsm.SiteView, t node.Timing, gossip func(site string) Word) core.Verdicts {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := core.Verdicts{Term: w.term}
	if w.term == 0 || w.since.IsZero() {
		return v
	}
	now := w.now()
	w.discountOwnPause(now, t)
	w.judgedAt = now
	for i := range sites {
		if x := &sites[i]; isPresent(x) {
			w.judge(&v, x, gossip(x.ID), t, now)
		}
	}
	return v
}

// isPresent reports whether a site is neither lost nor left.
func isPresent(x *fsm.SiteView) bool { return x.State == fsm.Alive || x.State == fsm.Suspected }

// judge decides on one site. REQUIRES: w.mu held.
func (w *Tracker) judge(v *core.Verdicts, x *fsm.SiteView, gossip Word, t node.Timing, now time.Time) {
	r := coord.Renewal{Site: x.ID, Incarnation: x.Incarnation}
	s := w.site(r)
	s.note(gossip, now)
	silent := now.Sub(later(s.renewed, w.since))
	// A pause of a third of the lease must not count: with the renewal
	// before it, the site is silent for up to a quarter longer.
	late := silent > 3*t.Lease/4 || s.parted && silent > 5*t.Lease/8 || w.isGone(v, r, s, t.Lease, now)
	switch {
	case silent > t.Lease+t.Margin, mutate.On("no-lease-margin") && silent > t.Lease/2:
		s.lossProposed = true
		v.Lost = append(v.Lost, r)
		if s.said.IsZero() || now.Sub(s.said) >= repeatEvery {
			s.said = now
			v.Say = append(v.Say, r)
		}
	case late && x.State == fsm.Alive:
		v.Suspect = append(v.Suspect, r)
	case !late && x.State == fsm.Suspected && !s.heard.IsZero(): // a former leader's reasons hold until it renews
		v.Trust = append(v.Trust, r)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
