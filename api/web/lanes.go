package web

import "time"

// lanes places the attempts of one site one by one, as cores would: each on the
// first lane that is free by then.
type lanes struct {
	most int // invariant: len(free) ≤ most
	free []time.Time
}

const (
	// maxLanes bounds the lanes of one row.
	maxLanes = 12
	// slack is how far one attempt may seem to begin before another one on the
	// same core has ended: starts and ends come from several clocks.
	slack = 100 * time.Millisecond
)

// lanesOf has as many lanes as a site has cores; of a site that is not known
// any more, as many as a row may have.
func lanesOf(cores int) lanes {
	if cores <= 0 || cores > maxLanes {
		cores = maxLanes
	}
	return lanes{most: cores}
}

// place returns the lane of an attempt; false: all are taken. Attempts come by
// start.
func (l *lanes) place(start, end time.Time) (lane int, ok bool) {
	for lane < len(l.free) && l.free[lane].After(start.Add(slack)) {
		lane++
	}
	if lane == l.most {
		return 0, false
	}
	if lane == len(l.free) {
		l.free = append(l.free, time.Time{})
	}
	l.free[lane] = end
	return lane, true
}
