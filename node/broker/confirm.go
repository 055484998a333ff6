package broker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

// Freshness says how old this broker's state may be.
func (b *Broker) Freshness() node.Freshness {
	return node.Freshness{
		Confirmed: b.contact.confirmed.Load(),
		Lease:     time.Duration(b.Params().LeaseMs) * time.Millisecond,
	}
}

// contact is when the state was last known to be as new as the leader's.
type contact struct{ confirmed atomic.Int64 } // CLOCK_BOOTTIME, see Freshness.Confirmed

// confirm notes that the state is as new as a moment of CLOCK_BOOTTIME.
func (c *contact) confirm(sent int64) {
	for {
		was := c.confirmed.Load()
		if sent <= was || c.confirmed.CompareAndSwap(was, sent) {
			return
		}
	}
}

// Confirm returns once this broker has applied all that was committed before the
// call: what it then shows is current. Without a leader it fails at once.
func (b *Broker) Confirm(ctx context.Context) error {
	if mutate.On("current-read") {
		return nil
	}
	if b.cfg.Log.Status().Lead == "" {
		return fmt.Errorf("%w: no leader is known", node.ErrNoQuorum)
	}
	sent := executor.Boottime()
	if _, err := b.cfg.Log.Sync(ctx); err != nil {
		return fmt.Errorf("%w: the leader does not confirm: %w", node.ErrNoQuorum, err)
	}
	b.contact.confirm(sent)
	return nil
}
