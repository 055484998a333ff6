package sim

import (
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// Answers is how estimates of starts came out, in one run or in several.
type Answers struct {
	Asked int // about a job that waited
	Told  int // of these, those that had an estimate
	// WithinP50 and WithinP90 are those of the told that started by then.
	WithinP50, WithinP90 int

	waits, p90s []time.Duration // of the told
}

// add notes an estimate and what came.
func (a *Answers) add(e node.Estimate, waited time.Duration) {
	a.Told++
	if waited <= e.P50 {
		a.WithinP50++
	}
	if waited <= e.P90 {
		a.WithinP90++
	}
	a.waits, a.p90s = append(a.waits, waited), append(a.p90s, e.P90)
}

// Plus adds what other runs came to.
func (a *Answers) Plus(o *Answers) {
	a.Asked, a.Told = a.Asked+o.Asked, a.Told+o.Told
	a.WithinP50, a.WithinP90 = a.WithinP50+o.WithinP50, a.WithinP90+o.WithinP90
	a.waits, a.p90s = append(a.waits, o.waits...), append(a.p90s, o.p90s...)
}

// Medians returns the median of the waits that were told of, and of their P90; 0 of none.
func (a *Answers) Medians() (wait, p90 time.Duration) { return median(a.waits), median(a.p90s) }

func median(of []time.Duration) time.Duration {
	if len(of) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(of))[len(of)/2]
}
