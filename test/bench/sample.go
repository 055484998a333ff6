package main

import (
	"math"
	"slices"
	"time"
)

// sample is a set of durations.
type sample []time.Duration

// mean returns milliseconds; NaN when there are none.
func (s sample) mean() float64 {
	sum := time.Duration(0)
	for _, d := range s {
		sum += d
	}
	return float64(sum) / float64(time.Millisecond) / float64(len(s))
}

// quantile returns the smallest element that at least the share q of all is
// not above (nearest rank), in milliseconds; NaN when there are none.
func (s sample) quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return float64(sorted[min(max(rank, 1), len(sorted))-1]) / float64(time.Millisecond)
}
