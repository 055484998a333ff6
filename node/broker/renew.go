package broker

import (
	"context"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

// renewLoop renews the lease every quarter of it.
func (b *Broker) renewLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-b.registrar.renewNow:
		case <-b.ctx.Done():
			return
		}
		t := node.TimingOf(b.Params(), b.cfg.KillGrace)
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
func (b *Broker) renew(t node.Timing) bool {
	incarnation := b.registrar.incarnation()
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
	b.contact.confirm(sent)
	b.checkLogTime(sent)
	until := sent + int64(t.Lease)
	ok := b.post(core.LeaseEvent{Incarnation: incarnation, Until: until, Reserve: int64(t.Grace + node.KillReserve)})
	b.leaseUntil.Store(until)
	return ok
}
