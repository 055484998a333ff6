package latency

import "time"

// shortestCount is how many durations a Shortest keeps.
const shortestCount = 6

// Shortest is the least that something took lately: what a way takes, however often somebody on it was busy. Where it
// grows for good that counts once the newest few durations say so. It is not safe for concurrent use.
type Shortest struct {
	ring [shortestCount]sample
	next int
}

// Add notes a duration that ended at a moment.
func (s *Shortest) Add(at time.Time, took time.Duration) {
	s.ring[s.next] = sample{at, took}
	s.next = (s.next + 1) % shortestCount
}

// Min returns the least of the newest durations that ended since a moment; ok is false if there is none.
func (s *Shortest) Min(since time.Time) (d time.Duration, ok bool) {
	for _, x := range s.ring {
		if !x.at.IsZero() && !x.at.Before(since) && (!ok || x.took < d) {
			d, ok = x.took, true
		}
	}
	return d, ok
}
