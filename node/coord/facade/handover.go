package facade

import (
	"slices"
	"sync"
	"time"
)

// Limits bound how often a leader hands over for one reason: an attempt puts the
// next one off, longer each time, and an hour has so many of them. Two members that
// find each other better in turn must not pass the leadership to and fro.
type Limits struct {
	First, Longest time.Duration // hold-off after the first attempt, and at most
	Hourly         int
}

// UnfitLimits are those of a leader that is not fit (coord.Log.SetUnfit): it judges
// nobody, so it tries again soon.
var UnfitLimits = Limits{First: 2 * time.Second, Longest: time.Minute, Hourly: 60}

// Holds returns how long the next attempt has to wait after the past ones, which
// stand in their order; not above 0: it may begin. Attempts count for an hour.
func (x Limits) Holds(past []time.Time, now time.Time) time.Duration {
	past = slices.DeleteFunc(slices.Clone(past), func(t time.Time) bool { return now.Sub(t) >= time.Hour })
	n := len(past)
	if n == 0 {
		return 0
	}
	hold := x.Longest
	if n < 16 { // beyond that the shift is above any hold-off
		hold = min(x.Longest, x.First<<(n-1))
	}
	holds := past[n-1].Add(hold).Sub(now)
	if n >= x.Hourly {
		holds = max(holds, past[n-x.Hourly].Add(time.Hour).Sub(now))
	}
	return holds
}

// Attempts are a member's handovers for one reason. It is safe for concurrent use.
type Attempts struct {
	Limits Limits

	mu   sync.Mutex
	past []time.Time // oldest first; Invariant: at most Limits.Hourly
	all  uint64
}

// Due reports whether the next attempt may begin.
func (a *Attempts) Due(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Limits.Holds(a.past, now) <= 0
}

// Note counts an attempt.
func (a *Attempts) Note(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all++
	a.past = append(a.past, now)
	a.past = slices.Delete(a.past, 0, max(0, len(a.past)-a.Limits.Hourly))
}

// Total returns how many attempts there were.
func (a *Attempts) Total() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}
