package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// farRest is what links between far sites do besides their delay.
var farRest = netlab.Link{Jitter: 5 * time.Millisecond, Loss: 0.001}

// moveApart puts the sites in different places, once all vote: the founder, which leads then, is near the majority.
// Faults that come make others lead. Whoever has no place, such as ZooKeeper's server, stays beside everybody.
func (f *fleet) moveApart(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWait, fmt.Errorf("not within %s", readyWait))
	defer cancel()
	err := testbed.Await(ctx, "votes of all", func() error {
		st, err := f.members[0].Status(ctx)
		if err == nil && !f.zk && len(st.Voters) != len(f.members) {
			err = fmt.Errorf("voters: %v", st.Voters)
		}
		return err
	})
	if err != nil {
		return err
	}
	return f.lab.SetRoundTrips(f.seed, netlab.MixedRoundTrips(len(f.members)), farRest)
}
