package core

// A site's lease (architecture D4) says until when its tasks for other sites
// may run without word from the leader. The site counts it from the moment it
// *sent* the renewal, on CLOCK_BOOTTIME; the leader counts from the moment it
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
//
// By the same lines an honest leader declares no site lost that has a lease by its own clock. The leader is a rival,
// and nobody else sees when it heard of whom: the wronged site itself is who can tell (Effects.LostBefore).

// lease is what the core knows of this site's own.
type lease struct {
	until int64 // CLOCK_BOOTTIME; Invariant: only grows, and only by renewals
	// incarnation is the one that the newest renewal was of.
	incarnation uint64
	// reserve is what an attempt needs before the fence to be worth a start.
	reserve int64
}

// LeaseEvent says that the leader renewed this incarnation's lease until a moment, and the
// state here is as new as the renewal.
type LeaseEvent struct {
	Incarnation uint64
	Until       int64
	Reserve     int64
}

func (LeaseEvent) isEvent() {}

// handleRenewed moves the fences and looks again for work that waited for a lease.
func (c *Core) handleRenewed(ev LeaseEvent, fx *Effects) {
	if ev.Incarnation != c.incarnation || ev.Until <= c.lease.until {
		return
	}
	c.lease = lease{until: ev.Until, incarnation: ev.Incarnation, reserve: ev.Reserve}
	fx.Fence = ev.Until
	c.seen = 0
}

// leased reports whether foreign work may be started now.
func (c *Core) leased() bool { return c.now.Boot+c.lease.reserve < c.lease.until }

// Alone reports whether this site has lost touch with the quorum: nothing that
// others could also run may be started, own users' work goes on.
func (c *Core) Alone() bool { return c.incarnation == 0 || c.now.Boot >= c.lease.until }
