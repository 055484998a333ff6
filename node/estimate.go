package node

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// Estimates of when a waiting job's next task starts. The method and its
// assumptions are in ESTIMATE.md. All of it is this broker's own and bounded;
// nothing is decided by it.

// Estimate is when a job's next task will probably start, counted from now.
type Estimate struct {
	// Unknown says why there is none, "" = there is.
	Unknown string
	// P50 and P90: it starts within so long with even odds, and nine times of ten.
	P50, P90 time.Duration
	// Waits is of how many earlier waits both are made, 0 = it starts at once.
	Waits int
	// Calibrated: these were of the same kind, with about as many tasks ahead.
	Calibrated bool
}

// Calibration is how this broker's latest estimates came out.
type Calibration struct {
	Starts int // judged so far, the last 1000 at most
	Held   int // of these started within their P90
	Open   int // estimates that wait for their start
}

const (
	// maxJudged estimates count in the calibration.
	maxJudged = 1000
	// maxOpen estimates of one band wait for their start at a time.
	maxOpen = 64
	// maxCandidates of the jobs that were just submitted may be followed.
	maxCandidates = 4
	// againEvery is how often, in ms, a job with several tasks is followed again.
	againEvery = 15_000
	// fewRatios are too few to correct by.
	fewRatios = 20
	// maxRatios of a band are kept.
	maxRatios = 200
	// The level of P90 follows what was missed, so that nine of ten hold in the
	// long run though workloads change (adaptive conformal inference).
	levelStep           = 0.01
	levelLow, levelHigh = 0.8, 0.99
	// startSlack widens the model's P90 for those that only learn.
	startSlack = 2
	// None is told while fewer than enoughHeld of the latest lately judged held, the
	// least that nine of ten would come to in 99 of 100 draws: a burst, or other work
	// than before, has made what was learnt worthless.
	lately     = 40
	enoughHeld = 0.8
	// overdue: an estimate is closed after so many times its P90.
	overdue = 4
)

// Estimator learns from the federation's events, and estimates. Safe for
// concurrent use.
type Estimator struct {
	mu         sync.Mutex
	flows      map[string]*flow // by site
	sampledMs  int64            // log time of the last sample, 0 = none
	candidates []fsm.JobID
	again      fsm.JobID // to be followed once more, Num 0 = none
	open       map[fsm.JobID]guess
	bands      [bandCount]band
	level      float64 // of the ratios, aimed at for P90
	judged     []bool  // ring of whether P90 held
	nextJudged int
	held       int
	learnt     bool // something that is to be kept
}

// guess is an estimate whose start has not been seen.
type guess struct {
	atMs int64
	base float64 // ms
	p90  float64 // ms
	band int
	late bool // counted as failed already
	// learns: too little was known to tell it, so it is not judged.
	learns bool
}

// NewEstimator returns one that knows nothing yet.
func NewEstimator() *Estimator {
	return &Estimator{flows: map[string]*flow{}, open: map[fsm.JobID]guess{}, level: 0.9}
}

// Observe takes one event of the log.
func (e *Estimator) Observe(ev *fsm.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch ev.Kind {
	case fsm.EventJobSubmitted:
		e.nominate(ev.Job)
	case fsm.EventTaskAssigned:
		e.started(ev)
	case fsm.EventTaskEnded, fsm.EventTaskRequeued:
		if ev.Site != "" && ev.End != fsm.EndDeclined && ev.End != fsm.EndUnstarted && ev.End != fsm.EndSuspected {
			e.flow(ev.Site).add(ev.Time, use{freed: ev.Need.MilliCPU, ends: 1})
			e.learnt = true
		}
	case fsm.EventJobEnded: // cancelled before it started: nothing is learnt
		if g, ok := e.open[ev.Job]; ok {
			delete(e.open, ev.Job)
			e.bands[g.band].open--
		}
	default:
	}
}

func (e *Estimator) flow(site string) *flow {
	f := e.flows[site]
	if f == nil {
		f = newFlow()
		e.flows[site] = f
	}
	return f
}

// Sample notes what is in use, and follows some of the jobs that came lately.
func (e *Estimator) Sample(s *fsm.State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := s.Time()
	if e.sampledMs > 0 && now > e.sampledMs {
		s.InUse(func(site string, milliCPU int64) {
			if f := e.flows[site]; f != nil || milliCPU > 0 {
				e.flow(site).add(now, use{held: float64(milliCPU) * float64(now-e.sampledMs)})
			}
		})
	}
	e.askAgain(now)
	e.sampledMs = now
	for _, id := range e.candidates {
		e.follow(s, id)
	}
	e.candidates = e.candidates[:0]
	e.late(now)
}

// follow opens an estimate of a job that waits.
func (e *Estimator) follow(s *fsm.State, id fsm.JobID) {
	v, ok := s.Why(id)
	if _, again := e.open[id]; again || !ok || v.Waiting == 0 {
		return
	}
	base, order, unknown := e.base(&v)
	b := bandOf(order)
	if unknown != "" || e.bands[b].open == maxOpen {
		return
	}
	e.bands[b].open++
	q := e.quantiles(order, v.TimeMs)
	g := guess{atMs: v.TimeMs, base: base, p90: base * q.p90, band: b, learns: q.of == 0}
	if g.learns {
		g.p90 = base * gammaRatio(order, 1.2816) * startSlack
	}
	e.open[id] = g
}

// nominate has a job followed with the next sample. Of more than maxCandidates in a second
// those with the least hash are, whichever came first: the last ones of a burst do not wait
// as its others do.
func (e *Estimator) nominate(id fsm.JobID) {
	if slices.Contains(e.candidates, id) {
		return
	}
	e.candidates = append(e.candidates, id)
	if len(e.candidates) > maxCandidates {
		slices.SortFunc(e.candidates, func(a, b fsm.JobID) int { return cmp.Compare(fsm.Mix(a.Num), fsm.Mix(b.Num)) })
		e.candidates = e.candidates[:maxCandidates]
	}
}

// askAgain follows one of the jobs with several tasks at fixed times.
func (e *Estimator) askAgain(now int64) {
	if now/againEvery != e.sampledMs/againEvery && e.again.Num > 0 {
		e.nominate(e.again)
		e.again = fsm.JobID{}
	}
}

// Estimate says when the job's next task will probably start.
func (e *Estimator) Estimate(v *fsm.WhyView) Estimate {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.ContainsFunc(v.Sites, func(x fsm.SiteWhy) bool { return x.Why == fsm.HinderedFree }) {
		return Estimate{Calibrated: true}
	}
	base, order, unknown := e.base(v)
	if unknown != "" {
		return Estimate{Unknown: unknown}
	}
	q := e.quantiles(order, v.TimeMs)
	if q.of == 0 {
		return Estimate{Unknown: fmt.Sprintf("too few waits were seen to their end, %d of the %d that it takes", e.seen(), fewRatios)}
	}
	if held, of := e.heldLately(); of >= fewRatios && float64(held) < enoughHeld*float64(of) {
		return Estimate{Unknown: fmt.Sprintf("of the last %d only %d started within their p90: waits are not now what they were", of, held)}
	}
	return Estimate{P50: inMs(base * q.p50), P90: inMs(base * q.p90), Waits: q.of, Calibrated: q.same}
}

// inMs turns milliseconds into a duration of at most ten years.
func inMs(ms float64) time.Duration {
	return time.Duration(min(ms, fsm.MaxTimeoutMs)) * time.Millisecond
}

// base is the mean wait in ms by the fluid model, and how many tasks of this
// size end before; or why neither is known.
func (e *Estimator) base(v *fsm.WhyView) (ms, order float64, unknown string) {
	var inUse float64
	var sites []string
	able := false
	for i := range v.Sites {
		switch x := &v.Sites[i]; x.Why {
		case fsm.HinderedFree, fsm.HinderedTurn, fsm.HinderedFull, fsm.HinderedReserved:
			able = true
			inUse += float64(x.InUse)
			sites = append(sites, x.Site)
		default:
		}
	}
	switch {
	case !able:
		return 0, 0, "no site could run it now"
	case inUse == 0:
		return 0, 0, "what occupies the machines is not the federation's"
	}
	rate, ends := e.hazard(sites, v.TimeMs)
	if ends == 0 {
		return 0, 0, "no task has ended lately at a site that could run it"
	}
	need := float64(v.Need.MilliCPU)
	ahead := aheadOf(v, inUse, 1/rate)
	return (ahead + need) / (inUse * rate), (ahead + need) / need, ""
}

// hazard is how many of the milli-cores in use at the sites fall free in a
// millisecond, each, and of how many ends that is known.
func (e *Estimator) hazard(sites []string, now int64) (rate float64, ends int) {
	flows := make([]*flow, 0, len(sites))
	for _, x := range sites {
		if f := e.flows[x]; f != nil {
			flows = append(flows, f)
		}
	}
	u := recent(flows, now)
	if u.ends == 0 || u.held == 0 || u.freed == 0 {
		return 0, 0
	}
	return float64(u.freed) / u.held, u.ends
}
