package node

import (
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// KillReserve is how long before its fence a supervisor sends KILL at the latest.
const KillReserve = 500 * time.Millisecond

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
	case t.Grace+KillReserve > t.Lease/2:
		return fmt.Errorf("kill grace + %s ≤ lease/2 fails with %s + %s > %s: one missed renewal would kill every foreign task; lower the grace or raise the lease",
			KillReserve, t.Grace, KillReserve, t.Lease/2)
	case t.Margin < t.Lease/100+100*time.Millisecond:
		return fmt.Errorf("margin ≥ lease/100 + 100ms fails with %s < %s: clock rates may differ by 1%%; raise the margin",
			t.Margin, t.Lease/100+100*time.Millisecond)
	}
	return nil
}

// TimingOf reads the federation's part from its parameters.
func TimingOf(p command.Params, grace time.Duration) Timing {
	return Timing{
		Lease:  time.Duration(p.LeaseMs) * time.Millisecond,
		Margin: time.Duration(p.MarginMs) * time.Millisecond,
		Grace:  grace,
	}
}
