package broker

import (
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

// A leader judges the other sites by commands, and a command has a number of its
// site's registered incarnation. So a leader that is not registered (it was declared
// lost and cannot end a foreign task, say) judges nobody: a killed site would keep
// its tasks. Such a broker says that it is not fit to lead, and the log gives the
// leadership to a voter that is.

// outside returns why this broker takes no part in the federation now, or nil: it
// is registered, and the state has not given its incarnation up since.
func (b *Broker) outside() error {
	registered := b.incarnation()
	if registered == 0 {
		return fmt.Errorf("not registered with the federation yet: %w", node.ErrNotReady)
	}
	state, incarnation := b.cfg.Replica.SiteState(b.cfg.Site)
	switch {
	case incarnation != registered:
		return fmt.Errorf("another broker of site %s has registered since: %w", b.cfg.Site, node.ErrNotReady)
	case state == fsm.SiteGone:
		return fmt.Errorf("site %s was declared lost, and ends what it runs for others before it registers again: %w", b.cfg.Site, node.ErrNotReady)
	case state == fsm.Left:
		return fmt.Errorf("site %s has left the federation: %w", b.cfg.Site, node.ErrNotReady)
	}
	return nil
}

// fitness is whether this broker could judge others as the leader. It is owned by
// watchLoop.
type fitness struct {
	unfit time.Time // since when it is outside; zero = it is not
}

// registerPatience returns how long a broker may be outside before it counts as unfit:
// one that has just started, or was just lost, registers within a fraction of it.
// A leader judges nobody for the first lease anyway.
func registerPatience(t node.Timing) time.Duration { return max(t.Lease/4, time.Second) }

// unfitReason returns why the broker is unfit now, "" if it is not.
func (f *fitness) unfitReason(outside error, now time.Time, patience time.Duration) string {
	if outside == nil {
		f.unfit = time.Time{}
		return ""
	}
	if f.unfit.IsZero() {
		f.unfit = now
	}
	if now.Sub(f.unfit) < patience || mutate.On("no-unregistered-handover") {
		return ""
	}
	return outside.Error()
}

// watchFitness tells the log whether this broker should lead.
func (b *Broker) watchFitness() {
	b.cfg.Log.SetUnfit(b.fitness.unfitReason(b.outside(), time.Now(), registerPatience(node.TimingOf(b.Params(), 0))))
}
