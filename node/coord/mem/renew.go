package mem

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
)

// Grant implements coord.Log.
func (l *Log) Grant(g coord.Grantor) {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	l.grantor = g
}

// HoldRenewals stops every renewal at the leader between its receipt and the
// confirmation of the leader, until release is called: a leader that is paused.
func (g *Group) HoldRenewals() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	hold := make(chan struct{})
	g.hold = hold
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.hold == hold {
			g.hold = nil
			close(hold)
		}
	}
}

// Renew implements coord.Log.
func (l *Log) Renew(ctx context.Context, r coord.Renewal) error {
	if r.Site != l.site {
		return fmt.Errorf("renew lease of %.80q: %w: this is %s, and a broker renews for itself", r.Site, coord.ErrRefused, l.site)
	}
	for {
		changed := l.g.changed.Wait()
		want, err := l.renew(ctx, r)
		if err == nil && want > 0 {
			err = l.reach(ctx, want)
		}
		switch {
		case err != nil:
			return fmt.Errorf("renew lease: %w", err)
		case want > 0:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("renew lease: %w: %w", coord.ErrNoLead, context.Cause(ctx))
		}
	}
}

// renew asks the leader known now, once: it returns the entry to reach, or 0 if
// there is no leader or it lost the leadership meanwhile. The Grantor is called without
// the group's lock, so that it may look at the log.
func (l *Log) renew(ctx context.Context, r coord.Renewal) (want uint64, err error) {
	l.g.mu.Lock()
	lead, term, hold := l.g.members[l.g.lead], l.g.term, l.g.hold
	switch {
	case l.closed || l.err != nil:
		err = l.closedErr()
	case !l.reachable():
		lead = nil
	}
	var g coord.Grantor
	if lead != nil {
		g = lead.grantor
	}
	l.g.mu.Unlock()
	if err != nil || lead == nil {
		return 0, err
	}
	if g == nil || !g.Received(r, term) {
		return 0, fmt.Errorf("%w: leader %s does not renew incarnation %d of %s", coord.ErrRefused, lead.site, r.Incarnation, r.Site)
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", coord.ErrNoLead, context.Cause(ctx))
		}
	}
	l.g.mu.Lock()
	leads := l.g.lead == lead.site && l.g.term == term && lead.reachable() && l.reachable()
	want = l.g.last()
	l.g.mu.Unlock()
	if !leads {
		return 0, nil
	}
	if !g.Confirmed(r, term) {
		return 0, fmt.Errorf("%w: leader %s dropped the renewal: the loss of incarnation %d of %s was proposed meanwhile",
			coord.ErrRefused, lead.site, r.Incarnation, r.Site)
	}
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	if l.g.term != term {
		return 0, nil // a former leader's acknowledgement
	}
	return want, nil
}

// reach returns once this member has applied an entry.
func (l *Log) reach(ctx context.Context, want uint64) error {
	for {
		progress := l.progress.Wait()
		l.g.mu.Lock()
		closed, err, reached := l.closed || l.err != nil, l.closedErr(), l.applied >= want
		l.g.mu.Unlock()
		switch {
		case reached:
			return nil
		case closed:
			return err
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", coord.ErrNoLead, context.Cause(ctx))
		}
	}
}

// Demote implements coord.Log.
func (l *Log) Demote(ctx context.Context, site string) error {
	if site != l.site {
		return fmt.Errorf("demote site %.80q: %w: this is %s, and a site gives up its own vote", site, coord.ErrRefused, l.site)
	}
	if _, err := l.Sync(ctx); err != nil {
		return fmt.Errorf("demote site %s: %w", site, err)
	}
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	up, rest := 0, 0
	for _, s := range l.g.voters() {
		if s == site {
			continue
		}
		rest++
		if l.g.members[s].reachable() {
			up++
		}
	}
	if 2*up <= rest {
		return fmt.Errorf("demote site %s: %w: the other voters form no quorum without it", site, coord.ErrRefused)
	}
	l.resting = true
	l.g.depose(site)
	return nil
}

// Stand implements coord.Log.
func (l *Log) Stand() {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	l.resting = false
	l.g.react()
}

// SetUnfit implements coord.Log.
func (l *Log) SetUnfit(why string) {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	if l.unfit != why {
		l.unfit = why
		l.g.react()
	}
}

var _ coord.Measured = (*Log)(nil)

// Figures implements coord.Measured: nothing is synced, no call is held, and handovers are not counted.
func (l *Log) Figures() coord.Figures {
	return coord.Figures{
		Syncs: map[string]time.Duration{l.site: 0}, HandOvers: map[string]uint64{"unfit": 0, "slow_disk": 0, "far": 0},
		Held: map[string]time.Duration{l.site: 0},
	}
}

// voters returns the members that did not give up their vote, sorted.
//
// REQUIRES: g.mu held.
func (g *Group) voters() []string {
	return slices.DeleteFunc(slices.Clone(g.order), func(s string) bool { return g.members[s].resting })
}
