package node

import (
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
)

// warden is the lead's side of the leases: it notes renewals, and proposes the
// loss of a site that has not renewed for a lease and the margin. It decides
// nothing while its broker is not the lead, and after a change of lead it first
// waits a full lease and margin: the former lead may have granted a lease in
// its last moment.
//
// Time is the process's monotonic clock, which stands still while the machine
// is suspended: the lead then waits longer, never shorter.
type warden struct {
	mu   sync.Mutex
	term uint64 // it watches in this term; 0 = not the lead
	// since is when the barrier of the term was applied; zero = not yet.
	since time.Time
	sites map[coord.Renewal]*watched
	now   func() time.Time
}

// watched is one incarnation of a site as the lead sees it.
type watched struct {
	renewed time.Time // last renewal that was granted, or when it was first seen
	// condemned: its loss was proposed in this term. Invariant: nothing is
	// granted to it any more in this term.
	condemned bool
}

var _ coord.Grantor = (*warden)(nil)

func newWarden(now func() time.Time) *warden {
	return &warden{now: now, sites: map[coord.Renewal]*watched{}}
}

// lead begins to watch in a term, or stops (term 0).
func (w *warden) lead(term uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enter(term)
}

// enter begins a term with nothing known. REQUIRES: w.mu held.
func (w *warden) enter(term uint64) {
	if w.term != term {
		w.term, w.since = term, time.Time{}
		clear(w.sites)
	}
}

// barrier notes that an entry of the term was applied: the wait begins.
func (w *warden) barrier(term uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.term != term || !w.since.IsZero() {
		return
	}
	w.since = w.now()
	if mutated("no-lead-change-wait") {
		w.since = w.since.Add(-time.Hour)
	}
}

// Received implements coord.Grantor.
func (w *warden) Received(r coord.Renewal, term uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if term > w.term { // the log knows of the new lead first
		w.enter(term)
	}
	return w.term == term && term != 0 && !w.site(r).condemned
}

// Confirmed implements coord.Grantor.
func (w *warden) Confirmed(r coord.Renewal, term uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.site(r)
	if w.term != term || term == 0 || s.condemned {
		return false
	}
	s.renewed = w.now()
	return true
}

// site returns what is known of an incarnation. REQUIRES: w.mu held.
func (w *warden) site(r coord.Renewal) *watched {
	s := w.sites[r]
	if s == nil {
		s = &watched{renewed: w.now()}
		if mutated("no-lead-change-wait") {
			s.renewed = w.since
		}
		w.sites[r] = s
	}
	return s
}

// verdicts of one look.
type verdicts struct {
	term    uint64
	lost    []coord.Renewal // condemned: propose their loss
	suspect []coord.Renewal // rest their offers
	trust   []coord.Renewal // wake their offers
}

// look judges the sites of the state. absent tells of gossip's opinion; it can
// only make a site suspected.
func (w *warden) look(sites []fsm.SiteView, t Timing, absent func(site string) bool) verdicts {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := verdicts{term: w.term}
	if w.term == 0 || w.since.IsZero() {
		return v
	}
	now := w.now()
	for i := range sites {
		x := &sites[i]
		if x.State != fsm.Alive && x.State != fsm.Suspected {
			continue
		}
		r := coord.Renewal{Site: x.ID, Incarnation: x.Incarnation}
		s := w.site(r)
		silent := now.Sub(later(s.renewed, w.since))
		// A pause of a third of the lease must not count: with the renewal
		// before it, the site is silent for up to a quarter longer.
		late := silent > 3*t.Lease/4 || absent(x.ID) && silent > 5*t.Lease/8
		switch {
		case silent > t.Lease+t.Margin, mutated("no-lease-margin") && silent > t.Lease/2:
			s.condemned = true
			v.lost = append(v.lost, r)
		case late && x.State == fsm.Alive:
			v.suspect = append(v.suspect, r)
		case !late && x.State == fsm.Suspected:
			v.trust = append(v.trust, r)
		}
	}
	return v
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
