package broker

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// judgeLoss tells if this site was declared lost while it had a lease, which ends at until (CLOCK_BOOTTIME): an honest
// leader counts the lease from later than this site does, and waits a margin more. The clock is read now, not at the
// turn's begin: a broker that was stopped meanwhile has no lease any more.
func (b *Broker) judgeLoss(until int64) {
	left := time.Duration(until - executor.Boottime())
	if left <= 0 {
		return
	}
	b.losses.Add(1)
	lead, term := "", uint64(0)
	b.cfg.Replica.View(func(s *fsm.State) { lead, term = s.Leader(), s.Term() })
	if lead == "" { // a federation without a roster: nobody has to say who leads
		lead = b.cfg.Log.Status().Lead
	}
	b.cfg.Logger.Error().Str("lead", lead).Uint64("term", term).Str("valid_for", left.Round(time.Millisecond).String()).
		Msg("this site was declared lost while its lease was valid: the leader breaks the rules, or this machine's " +
			"clock stood; see \"A loss that was unjust\" in cloudshare guide operator")
}
