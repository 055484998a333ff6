package raftlog

import (
	"slices"
	"time"
)

const (
	// sampleCount is how many durations a latency keeps.
	sampleCount = 32
	// sampleAge is after how long a duration counts no more: an idle leader still
	// syncs an entry a second.
	sampleAge = 6 * time.Second
	// leastSamples make a median.
	leastSamples = 3
)

// latency is how long something took lately: the newest durations, and their
// median, which a single hiccup does not move. It is not safe for concurrent use.
type latency struct {
	ring [sampleCount]sample
	next int
}

type sample struct {
	at   time.Time // zero = none
	took time.Duration
}

func (l *latency) add(at time.Time, took time.Duration) {
	l.ring[l.next] = sample{at, took}
	l.next = (l.next + 1) % sampleCount
}

// median returns the median of the durations that are not too old, and of those in
// more; ok is false if there are too few.
func (l *latency) median(now time.Time, more ...time.Duration) (d time.Duration, ok bool) {
	all := make([]time.Duration, 0, sampleCount+len(more))
	for _, s := range l.ring {
		if !s.at.IsZero() && now.Sub(s.at) <= sampleAge {
			all = append(all, s.took)
		}
	}
	all = append(all, more...)
	if len(all) < leastSamples {
		return 0, false
	}
	slices.Sort(all)
	return all[len(all)/2], true
}
