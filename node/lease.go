package node

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
)

// A site's lease (architecture D4) says until when its tasks for other sites
// may run without word from the lead. The site counts it from the moment it
// *sent* the renewal, on CLOCK_BOOTTIME; the lead counts from the moment it
// *received* it, and waits Margin longer. So, as long as clock rates differ by
// less than Margin in a lease,
//
//	site:  all foreign attempts dead  ≤ send + Lease
//	lead:  SiteLost proposed          > receive + Lease + Margin
//	       send ≤ receive
//
// and no task that the state hands to another site still runs here. What holds
// the site to it is not this process but the supervisors: they have the fence
// as an absolute moment that only a renewal moves, and kill by themselves.

// killReserve is how long before its fence a supervisor sends KILL at the latest.
const killReserve = 500 * time.Millisecond

// Timing is what a federation's lease and a site's grace must satisfy.
type Timing struct {
	Lease  time.Duration // replicated, the same at all sites
	Margin time.Duration // replicated
	Grace  time.Duration // this site's time between TERM and KILL
}

// Validate refuses timings under which a fence could come too late or a healthy
// site would lose its tasks; the error is the inequality that fails.
func (t Timing) Validate() error {
	switch {
	case t.Lease < time.Second:
		return fmt.Errorf("lease is %s: must be at least 1s", t.Lease)
	case t.Grace < 0:
		return fmt.Errorf("kill grace is %s: must not be negative", t.Grace)
	case t.Grace+killReserve > t.Lease/2:
		return fmt.Errorf("kill grace + %s ≤ lease/2 fails with %s + %s > %s: one missed renewal would kill every foreign task; lower the grace or raise the lease",
			killReserve, t.Grace, killReserve, t.Lease/2)
	case t.Margin < t.Lease/100+100*time.Millisecond:
		return fmt.Errorf("margin ≥ lease/100 + 100ms fails with %s < %s: clock rates may differ by 1%%; raise the margin",
			t.Margin, t.Lease/100+100*time.Millisecond)
	}
	return nil
}

// timingOf reads the federation's part from its parameters.
func timingOf(p fsm.Params, grace time.Duration) Timing {
	return Timing{
		Lease:  time.Duration(p.LeaseMs) * time.Millisecond,
		Margin: time.Duration(p.MarginMs) * time.Millisecond,
		Grace:  grace,
	}
}

// lease is what the core knows of this site's own.
type lease struct {
	until int64 // CLOCK_BOOTTIME; Invariant: only grows, and only by renewals
	// reserve is what an attempt needs before the fence to be worth a start.
	reserve int64
}

// leaseEvent: the lead renewed this incarnation's lease until a moment, and the
// state here is as new as the renewal.
type leaseEvent struct {
	incarnation uint64
	until       int64
	reserve     int64
}

func (leaseEvent) isEvent() {}

// renewed moves the fences and looks again for work that waited for a lease.
func (c *core) renewed(ev leaseEvent, fx *effects) {
	if ev.incarnation != c.incarnation || ev.until <= c.lease.until {
		return
	}
	c.lease.until, c.lease.reserve = ev.until, ev.reserve
	fx.fence = ev.until
	c.seen = 0
}

// leased reports whether foreign work may be started now.
func (c *core) leased() bool { return c.now.boot+c.lease.reserve < c.lease.until }

// alone reports whether this site has lost touch with the quorum: nothing that
// others could also run may be started, own users' work goes on.
func (c *core) alone() bool { return c.incarnation == 0 || c.now.boot >= c.lease.until }

// renewLoop renews the lease every quarter of it.
func (b *Broker) renewLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-b.renewNow:
		case <-b.ctx.Done():
			return
		}
		t := timingOf(b.Params(), b.cfg.KillGrace)
		if t.Lease <= 0 {
			t.Lease = time.Second // not founded yet
		}
		if b.renew(t) {
			timer.Reset(t.Lease / 4)
		} else {
			timer.Reset(t.Lease / 40)
		}
	}
}

// renew asks once for a lease that counts from now.
func (b *Broker) renew(t Timing) bool {
	incarnation := b.incarnation()
	if incarnation == 0 {
		return false
	}
	sent := executor.Boottime()
	ctx, cancel := context.WithTimeout(b.ctx, t.Lease/2)
	defer cancel()
	err := b.cfg.Log.Renew(ctx, coord.Renewal{Site: b.cfg.Site, Incarnation: incarnation})
	if err != nil {
		b.cfg.Logger.Debug().Err(err).Msg("lease not renewed")
		return false
	}
	b.confirm(sent)
	until := sent + int64(t.Lease)
	ok := b.post(leaseEvent{incarnation: incarnation, until: until, reserve: int64(t.Grace + killReserve)})
	b.leaseUntil.Store(until)
	return ok
}

// extend moves the fences of the handlers that have a watchdog.
func (b *Broker) extend(until int64) {
	for name, h := range b.handlers {
		x, ok := h.(executor.Extender)
		if !ok {
			continue
		}
		if err := x.Extend(until); err != nil && b.ctx.Err() == nil {
			b.cfg.Logger.Warn().Err(err).Str("handler", name).Msg("fences were not moved: foreign tasks will be stopped")
		}
	}
}
