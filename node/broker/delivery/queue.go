package delivery

import (
	"context"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
)

// site is one at which outputs wait.
type site struct {
	name    string
	fresh   []*delivery // that were not tried yet, in the order of the state
	later   []*delivery // that are tried again, in the order in which they failed
	workers int
	rest    time.Time     // until then it is not asked: it could not be reached
	rests   int           // in a row
	wake    chan struct{} // something is fresh
}

// queue has a delivery fetched when its turn comes. REQUIRES: l.mu held.
func (l *Loop) queue(ctx context.Context, d *delivery) {
	s := l.sites[d.Site]
	if s == nil {
		s = &site{name: d.Site, wake: make(chan struct{}, 1)}
		l.sites[d.Site] = s
	}
	if d.tries == 0 {
		s.fresh = append(s.fresh, d)
		coord.Signal(s.wake)
	} else {
		s.later = append(s.later, d)
	}
	if s.workers < l.cfg.Pace.SiteWorkers && !l.ended {
		s.workers++
		l.wg.Go(func() { l.work(ctx, s) })
	}
}

// work fetches batches of a site until there are none.
func (l *Loop) work(ctx context.Context, s *site) {
	for {
		batch, wait, over := l.next(ctx, s)
		switch {
		case over:
			return
		case len(batch) == 0:
			l.pause(ctx, s, wait)
			continue
		}
		select {
		case l.workers <- struct{}{}:
			l.fetch(ctx, s.name, batch)
			<-l.workers
		case <-ctx.Done():
		}
	}
}

// next returns what a site's worker does next: a batch, or to wait, or nothing more.
func (l *Loop) next(ctx context.Context, s *site) (batch []*delivery, wait time.Duration, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	wait = s.rest.Sub(now)
	if ctx.Err() == nil && wait <= 0 {
		batch, wait = s.takeDue(now, l.cfg.Pace.Batch)
	}
	switch {
	case ctx.Err() == nil && len(batch) > 0:
		return batch, 0, false
	case ctx.Err() == nil && len(s.fresh)+len(s.later) > 0 && s.workers == 1:
		return nil, wait, false
	}
	if s.workers--; s.workers == 0 {
		delete(l.sites, s.name)
	}
	return nil, 0, true
}

// takeDue takes what is to be fetched now, or says how long it takes until something is.
func (s *site) takeDue(now time.Time, most int) (batch []*delivery, wait time.Duration) {
	for len(batch) < most && len(s.fresh) > 0 {
		batch, s.fresh = appendLive(batch, s.fresh[0]), s.fresh[1:]
	}
	for len(batch) < most && len(s.later) > 0 && !s.later[0].due.After(now) {
		batch, s.later = appendLive(batch, s.later[0]), s.later[1:]
	}
	if len(s.later) > 0 {
		wait = s.later[0].due.Sub(now)
	}
	return batch, wait
}

func appendLive(batch []*delivery, d *delivery) []*delivery {
	if d.ctx.Err() != nil {
		return batch
	}
	d.why = "" // it is not what it waits for while it is tried again
	return append(batch, d)
}

// pause waits until something is to be tried again, or comes.
func (l *Loop) pause(ctx context.Context, s *site, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.wake:
	case <-ctx.Done():
	}
}

const (
	// firstPause and longestPause are between two tries.
	firstPause, longestPause = time.Second, time.Minute
)

// reached notes whether a site could be reached.
func (l *Loop) reached(name string, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sites[name]
	switch {
	case s == nil:
	case yes:
		s.rests, s.rest = 0, time.Time{}
	default:
		s.rest = time.Now().Add(min(firstPause<<min(s.rests, 10), longestPause))
		s.rests++
	}
}

// again has a delivery tried again. REQUIRES: l.mu held.
func (l *Loop) again(ctx context.Context, d *delivery, why string) {
	if d.ctx.Err() != nil {
		return
	}
	pause := min(firstPause<<min(d.tries, 10), longestPause)
	d.tries++
	d.due, d.why = time.Now().Add(pause), why
	l.queue(ctx, d)
}
