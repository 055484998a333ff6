package estimate

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// started judges an estimate. The job's later tasks are worth one, too, but not
// right after a start: only moments that do not depend on starts are fair.
func (e *Estimator) started(ev *fsm.Event) {
	guesses, ok := e.open[ev.Job]
	if !ok {
		return
	}
	delete(e.open, ev.Job)
	for i := range guesses {
		e.closeGuess(&guesses[i], float64(ev.Time-guesses[i].atMs))
	}
	if e.again.Num == 0 {
		e.again = ev.Job
	}
}

// closeGuess learns from a guess that is no longer open.
func (e *Estimator) closeGuess(g *guess, waited float64) {
	b := e.bandOf(g)
	b.open--
	b.add(waited / g.base)
	if !g.late && !g.learns {
		e.judge(g.kind, waited <= g.p90)
	}
}

// late counts estimates that failed without waiting for the start, so that
// the figures are not made of the lucky ones.
func (e *Estimator) late(now int64) {
	for _, id := range slices.SortedFunc(maps.Keys(e.open), compareJobs) {
		e.open[id] = slices.DeleteFunc(e.open[id], func(g guess) bool { return e.overdue(&g, now) })
		for i := range e.open[id] {
			e.miss(&e.open[id][i], now)
		}
		if len(e.open[id]) == 0 {
			delete(e.open, id)
		}
	}
}

// overdue closes a guess whose start is given up, and reports whether it did.
func (e *Estimator) overdue(g *guess, now int64) bool {
	waited := float64(now - g.atMs)
	if waited <= overdue*g.p90 {
		return false
	}
	e.miss(g, now)
	e.closeGuess(g, waited)
	return true
}

// miss counts a guess as failed once it has outlived its P90.
func (e *Estimator) miss(g *guess, now int64) {
	if g.late || float64(now-g.atMs) <= g.p90 {
		return
	}
	if g.late = true; !g.learns {
		e.judge(g.kind, false)
	}
}

func compareJobs(a, b command.JobID) int {
	return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Num, b.Num))
}

// judge notes whether a P90 of a kind held.
func (e *Estimator) judge(of int, held bool) {
	e.learnt = true
	k := &e.kinds[of]
	if held {
		k.level -= levelStep * 0.1
	} else {
		k.level += levelStep * 0.9
	}
	low := levelLow
	if of == kindFresh {
		low = levelLowFresh
	}
	k.level = min(max(k.level, low), levelHigh)
	if len(k.judged) < maxJudged {
		k.judged = append(k.judged, held)
	} else {
		if k.judged[k.next] {
			k.held--
		}
		k.judged[k.next] = held
		k.next = (k.next + 1) % maxJudged
	}
	if held {
		k.held++
	}
}

// Calibration tells how the latest estimates came out.
func (e *Estimator) Calibration() node.Calibration {
	e.mu.Lock()
	defer e.mu.Unlock()
	var c node.Calibration
	for i := range e.kinds {
		k := &e.kinds[i]
		c.Starts, c.Held = c.Starts+len(k.judged), c.Held+k.held
	}
	for _, guesses := range e.open {
		c.Open += len(guesses)
	}
	return c
}

// heldLately returns how many of the latest judged held.
func (k *kind) heldLately() (held, of int) {
	of = min(len(k.judged), lately)
	for i := range of {
		if k.judged[(k.next-1-i+2*len(k.judged))%len(k.judged)] {
			held++
		}
	}
	return held, of
}

// seen returns how many waits are remembered, of all kinds.
func (e *Estimator) seen() (n int) {
	for i := range e.kinds {
		for b := range e.kinds[i].bands {
			n += len(e.kinds[i].bands[b].ratios)
		}
	}
	return n
}

// quantiles are of actual waits as parts of the model's mean.
type quantiles struct {
	p50, p90 float64
	of       int  // waits that they are of, 0 = too few
	same     bool // these were of one band
}

// quantiles tells how waits of a kind came out that had about as many tasks ahead; if these
// are too few, those of the kind, else all. What waits still counts as far as it has waited:
// else a burst would be learnt of only after it.
func (e *Estimator) quantiles(kind int, order float64, now int64) quantiles {
	b := bandOf(order)
	for _, in := range [...]func(k, band int) bool{
		func(k, band int) bool { return k == kind && band == b },
		func(k, _ int) bool { return k == kind },
		func(int, int) bool { return true },
	} {
		waits, ended := e.waits(in, now)
		if ended >= fewRatios {
			same := in(kind, b) && !in(kind, (b+1)%bandCount)
			return quantiles{conformal(waits, 0.5), conformal(waits, e.kinds[kind].level), ended, same}
		}
	}
	return quantiles{}
}

// waits returns the waits of some bands as parts of the model's, sorted, and how many of
// them have ended.
func (e *Estimator) waits(in func(kind, band int) bool, now int64) (waits []wait, ended int) {
	for k := range e.kinds {
		for b := range e.kinds[k].bands {
			if in(k, b) {
				for _, r := range e.kinds[k].bands[b].ratios {
					waits = append(waits, wait{r, true})
				}
			}
		}
	}
	ended = len(waits)
	for _, guesses := range e.open { // in any order: they are sorted below
		for i := range guesses {
			if g := &guesses[i]; in(g.kind, g.band) {
				waits = append(waits, wait{float64(now-g.atMs) / g.base, false})
			}
		}
	}
	slices.SortFunc(waits, func(x, y wait) int {
		switch {
		case x.ratio != y.ratio:
			return cmp.Compare(x.ratio, y.ratio)
		case x.ended == y.ended:
			return 0
		case x.ended: // what has waited as long may end later
			return -1
		}
		return 1
	})
	return waits, ended
}

// wait is how long a job has waited, as a part of the model's mean.
type wait struct {
	ratio float64
	ended bool // else it waits still
}

// gammaRatio returns a quantile, at z of the normal distribution, of the time until
// the k-th of independent ends, as a part of its mean (Wilson and Hilferty).
func gammaRatio(k, z float64) float64 {
	k = max(k, 1)
	return math.Pow(1-1/(9*k)+z/(3*math.Sqrt(k)), 3)
}

// bandCount is how many bands there are. Bands part estimates by how many tasks end before: the fewer, the more a
// single long one counts.
const bandCount = 6

func bandOf(order float64) int {
	b := 0
	for limit := 2.0; b < bandCount-1 && order >= limit; limit *= 4 {
		b++
	}
	return b
}

// band is how estimates of one kind with about as many tasks ahead came out: actual waits as
// parts of the model's.
type band struct {
	ratios   []float64 // ring
	next     int
	open     int
	openedMs int64 // when the latest was opened
}

func (b *band) add(ratio float64) {
	if len(b.ratios) < maxRatios {
		b.ratios = append(b.ratios, ratio)
		return
	}
	b.ratios[b.next] = ratio
	b.next = (b.next + 1) % maxRatios
}

// conformal returns the least of sorted waits that a part p of n+1 such waits keeps below: the
// split conformal bound. What waits still is known to wait as long at least, so what it
// stands for is shared out among the longer ones (Kaplan and Meier). REQUIRES: waits.
func conformal(sorted []wait, p float64) float64 {
	longer := 1.0 // part of the waits
	for i, w := range sorted {
		if w.ended {
			longer *= 1 - 1/float64(len(sorted)-i+1)
		}
		if 1-longer >= p-1e-9 {
			return w.ratio
		}
	}
	return sorted[len(sorted)-1].ratio
}
