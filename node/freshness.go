package node

import (
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// Freshness says how old a broker's copy of the replicated state may be. It is
// read before the state: what is shown then is no older.
type Freshness struct {
	// Confirmed is the moment at which a question was sent whose answer, the
	// leader's, said how far the state went, and all of that is applied here.
	// CLOCK_BOOTTIME in nanoseconds; 0 = there was no contact since the start.
	Confirmed int64
	// Lease is how old a state may be before it is stale: a broker that has
	// contact renews its lease, and so confirms its state, four times as often.
	Lease time.Duration
}

// leastLease is taken for a lease that is not known.
const leastLease = time.Second

// FreshnessOf returns that of a broker that had contact some time ago.
func FreshnessOf(age, lease time.Duration) Freshness {
	return Freshness{Confirmed: executor.Boottime() - int64(age), Lease: lease}
}

// Age returns how old the state may be now; false: there was no contact since the start.
func (f Freshness) Age() (age time.Duration, known bool) {
	if f.Confirmed == 0 {
		return 0, false
	}
	return max(0, time.Duration(executor.Boottime()-f.Confirmed)), true
}

// Stale reports whether the broker has lost contact with the leader.
func (f Freshness) Stale() bool { return f.StaleAt(f.Age()) }

// StaleAt is Stale by an Age that was read before: each reading asks the kernel.
func (f Freshness) StaleAt(age time.Duration, known bool) bool {
	return !known || age > max(f.Lease, leastLease)
}

// Words says of when a stale state is, and why; "" of one that is not stale.
func (f Freshness) Words() string {
	if !f.Stale() {
		return ""
	}
	return StaleWords(f.Age())
}

// StaleWords is Freshness.Words of a stale state of that age, if it is known.
func StaleWords(age time.Duration, known bool) string {
	if !known {
		return "of unknown age: this broker has had no contact with the leader since it started"
	}
	return fmt.Sprintf("as of %s ago: this broker has no contact with the leader", inSeconds(age))
}

// StaleMeans says what works while a broker has no contact with the leader.
const StaleMeans = "its own users' jobs are accepted and run at home, all else waits"

// inSeconds rounds a time down to what matters.
func inSeconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return d.Truncate(time.Second).String()
}
