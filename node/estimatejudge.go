package node

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
)

// started judges an estimate. The job's later tasks are worth one, too, but not
// right after a start: only moments that do not depend on starts are fair.
func (e *Estimator) started(ev *fsm.Event) {
	if g, ok := e.open[ev.Job]; ok {
		e.closeGuess(ev.Job, g, float64(ev.Time-g.atMs))
		if e.again.Num == 0 {
			e.again = ev.Job
		}
	}
}

func (e *Estimator) closeGuess(id fsm.JobID, g guess, waited float64) {
	delete(e.open, id)
	e.bands[g.band].open--
	e.bands[g.band].add(waited / g.base)
	if !g.late && !g.learns {
		e.judge(waited <= g.p90)
	}
}

// late counts estimates that failed without waiting for the start, so that
// the figures are not made of the lucky ones.
func (e *Estimator) late(now int64) {
	for _, id := range slices.SortedFunc(maps.Keys(e.open), compareJobs) {
		g := e.open[id]
		waited := float64(now - g.atMs)
		switch {
		case waited > overdue*g.p90:
			if !g.late && !g.learns {
				e.judge(false)
			}
			g.late = true
			e.closeGuess(id, g, waited)
		case waited > g.p90 && !g.late:
			g.late = true
			e.open[id] = g
			if !g.learns {
				e.judge(false)
			}
		}
	}
}

func compareJobs(a, b fsm.JobID) int {
	return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Num, b.Num))
}

func (e *Estimator) judge(held bool) {
	e.learnt = true
	if held {
		e.level -= levelStep * 0.1
	} else {
		e.level += levelStep * 0.9
	}
	e.level = min(max(e.level, levelLow), levelHigh)
	if len(e.judged) < maxJudged {
		e.judged = append(e.judged, held)
	} else {
		if e.judged[e.nextJudged] {
			e.held--
		}
		e.judged[e.nextJudged] = held
		e.nextJudged = (e.nextJudged + 1) % maxJudged
	}
	if held {
		e.held++
	}
}

// Calibration tells how the latest estimates came out.
func (e *Estimator) Calibration() Calibration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Calibration{Starts: len(e.judged), Held: e.held, Open: len(e.open)}
}

// heldLately is how many of the latest judged held.
func (e *Estimator) heldLately() (held, of int) {
	of = min(len(e.judged), lately)
	for i := range of {
		if e.judged[(e.nextJudged-1-i+2*len(e.judged))%len(e.judged)] {
			held++
		}
	}
	return held, of
}

// seen is how many waits are remembered, of all kinds.
func (e *Estimator) seen() (n int) {
	for i := range e.bands {
		n += len(e.bands[i].ratios)
	}
	return n
}

// quantiles are of actual waits as parts of the model's mean.
type quantiles struct {
	p50, p90 float64
	of       int  // waits that they are of, 0 = too few
	same     bool // these were of one band
}

// quantiles tells how waits came out that had about as many tasks ahead; if these are too
// few, waits of all kinds. What waits still, and has outlived its P90, counts as far as it
// has waited: else a burst would be learnt of only after it.
func (e *Estimator) quantiles(order float64, now int64) quantiles {
	b := bandOf(order)
	ratios, same := slices.Clone(e.bands[b].ratios), true
	if len(ratios) < fewRatios {
		same, ratios = false, nil
		for i := range e.bands {
			ratios = append(ratios, e.bands[i].ratios...)
		}
	}
	if len(ratios) < fewRatios {
		return quantiles{}
	}
	for _, g := range e.open { // in any order: they are sorted below
		if g.late && (!same || g.band == b) {
			ratios = append(ratios, float64(now-g.atMs)/g.base)
		}
	}
	slices.Sort(ratios)
	return quantiles{conformal(ratios, 0.5), conformal(ratios, e.level), len(ratios), same}
}

// gammaRatio is a quantile, at z of the normal distribution, of the time until
// the k-th of independent ends, as a part of its mean (Wilson and Hilferty).
func gammaRatio(k, z float64) float64 {
	k = max(k, 1)
	return math.Pow(1-1/(9*k)+z/(3*math.Sqrt(k)), 3)
}

// Bands part estimates by how many tasks end before: the fewer, the more a
// single long one counts.
const bandCount = 6

func bandOf(order float64) int {
	b := 0
	for limit := 2.0; b < bandCount-1 && order >= limit; limit *= 4 {
		b++
	}
	return b
}

// band is how estimates of one kind came out: actual waits as parts of the model's.
type band struct {
	ratios []float64 // ring
	next   int
	open   int
}

func (b *band) add(ratio float64) {
	if len(b.ratios) < maxRatios {
		b.ratios = append(b.ratios, ratio)
		return
	}
	b.ratios[b.next] = ratio
	b.next = (b.next + 1) % maxRatios
}

// conformal is the least of sorted waits that a part p of n+1 such waits keeps below: the
// split conformal bound.
func conformal(sorted []float64, p float64) float64 {
	i := int(math.Ceil(p*float64(len(sorted)+1))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
