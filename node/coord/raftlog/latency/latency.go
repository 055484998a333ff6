// Package latency measures how long something took lately.
package latency

import (
	"slices"
	"time"
)

const (
	// sampleCount is how many durations a Recent keeps.
	sampleCount = 32
	// sampleAge is after how long a duration no longer counts beside Least newer
	// ones: an idle leader still syncs an entry a second.
	sampleAge = 6 * time.Second
	// sampleKept is after how long it counts no more at all: the slowest disk that is
	// not given up (timing.stall) makes Least of them in that time.
	sampleKept = 30 * time.Second
	// Least make a median.
	Least = 3
)

// Recent is how long something took lately: the newest durations, and their
// median, which a single hiccup does not move. It is not safe for concurrent use.
type Recent struct {
	ring [sampleCount]sample
	next int
}

type sample struct {
	at   time.Time // zero = none
	took time.Duration
}

// Add notes a duration that ended at a moment.
func (l *Recent) Add(at time.Time, took time.Duration) {
	l.ring[l.next] = sample{at, took}
	l.next = (l.next + 1) % sampleCount
}

// Median returns the median of the durations that are not too old, and of those in
// more; ok is false if there are too few.
func (l *Recent) Median(now time.Time, more ...time.Duration) (d time.Duration, ok bool) {
	all := append(make([]time.Duration, 0, sampleCount+len(more)), more...)
	for i := range l.ring { // the newest first
		s := l.ring[(l.next-1-i+2*sampleCount)%sampleCount]
		age := now.Sub(s.at)
		if s.at.IsZero() || age > sampleKept || age > sampleAge && len(all) >= Least {
			break
		}
		all = append(all, s.took)
	}
	if len(all) < Least {
		return 0, false
	}
	slices.Sort(all)
	return all[len(all)/2], true
}
