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
func (e *estimator) started(ev *fsm.Event) {
	if g, ok := e.open[ev.Job]; ok {
		e.closeGuess(ev.Job, g, float64(ev.Time-g.atMs))
		if e.again.Num == 0 {
			e.again = ev.Job
		}
	}
}

func (e *estimator) closeGuess(id fsm.JobID, g guess, waited float64) {
	delete(e.open, id)
	e.bands[g.band].open--
	e.bands[g.band].add(waited / g.base)
	if !g.late {
		e.judge(waited <= g.p90)
	}
}

// late counts estimates that failed without waiting for the start, so that
// the figures are not made of the lucky ones.
func (e *estimator) late(now int64) {
	for _, id := range slices.SortedFunc(maps.Keys(e.open), compareJobs) {
		g := e.open[id]
		waited := float64(now - g.atMs)
		switch {
		case waited > overdue*g.p90:
			if !g.late {
				e.judge(false)
				g.late = true
			}
			e.closeGuess(id, g, waited)
		case waited > g.p90 && !g.late:
			g.late = true
			e.open[id] = g
			e.judge(false)
		}
	}
}

func compareJobs(a, b fsm.JobID) int {
	return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Num, b.Num))
}

func (e *estimator) judge(held bool) {
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

// calibration tells how the latest estimates came out.
func (e *estimator) calibration() Calibration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Calibration{Starts: len(e.judged), Held: e.held, Open: len(e.open)}
}

// quantiles corrects the model's mean by how it came out before.
func (e *estimator) quantiles(base, order float64) (p50, p90 float64, calibrated bool) {
	if b := &e.bands[bandOf(order)]; len(b.ratios) >= fewRatios {
		return base * b.quantile(0.5), base * b.quantile(e.level), true
	}
	return base * gammaRatio(order, 0), base * gammaRatio(order, 1.2816) * startSlack, false
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

// quantile is the least ratio that a part p of n+1 such waits keeps below: the
// split conformal bound.
func (b *band) quantile(p float64) float64 {
	sorted := slices.Sorted(slices.Values(b.ratios))
	i := int(math.Ceil(p*float64(len(sorted)+1))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
