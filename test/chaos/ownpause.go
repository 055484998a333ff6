package main

import (
	"context"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
)

// ownPauses of the leader, each longer than the lease and the margin: after one of
// them a renewal may be faster than the first look at the sites.
const ownPauses = 3

// ownPause pauses the only voter of two sites for longer than a lease. It leads
// still; the other site, which it could not hear meanwhile, must not be given up.
func ownPause(ctx context.Context, r *run) error {
	leader, other := r.members[0], r.members[1]
	before, err := leader.Info(ctx, other.Name)
	if err != nil {
		return err
	}
	for range ownPauses {
		r.say("%s, which leads alone, is paused", leader.Name)
		if err = r.pause(ctx, lease+margin+2*time.Second, leader); err != nil {
			return err
		}
		if err = leader.awaitReady(ctx); err != nil {
			return broke(check.Progress, "%s is not ready after its pause: %s", leader.Name, err)
		}
		if err = sleep(ctx, lag); err != nil { // several looks
			return err
		}
		// A site that was given up is there again as another incarnation.
		now, err := leader.Info(ctx, other.Name)
		if err != nil {
			return err
		}
		if now != before {
			return broke(check.Progress, "%s was given up, and ran: it was %+v, and is %+v", other.Name, before, now)
		}
	}
	return nil
}
