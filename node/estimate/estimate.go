package estimate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Estimates of when a waiting job's next task starts. The method and its
// assumptions are in ESTIMATE.md. All of it is this broker's own and bounded;
// nothing is decided by it.

const (
	// maxJudged estimates of each kind count in the calibration.
	maxJudged = 500
	// maxOpen estimates of one band wait for their start at a time.
	maxOpen = 64
	// maxCandidates of the jobs that were just submitted may be followed.
	maxCandidates = 4
	// againEvery is how often, in ms, a job is followed again: one with several tasks, and
	// one that waits still.
	againEvery = 15_000
	// freshMs is how long, in ms, a job counts as just submitted. Whoever asks later asks
	// about those that wait long.
	freshMs = 60_000
	// waitedAtATime is about how many jobs that wait still are followed in one band: one
	// more each time such a part of the expected wait is over.
	waitedAtATime = 16
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
	// Of jobs just submitted it is 0.9 at least: of a burst few are followed, many are asked
	// about, and all come out alike, so what is missed counts too little.
	levelLowFresh = 0.9
	// None is told while fewer than enoughHeld of the latest lately judged held: a burst,
	// or other work than before, has made what was learnt worthless.
	lately     = 40
	enoughHeld = 0.85
	// overdue: an estimate is closed after so many times its P90.
	overdue = 4
)

// Estimator learns from the federation's events, and estimates. Safe for
// concurrent use.
type Estimator struct {
	mu         sync.Mutex
	flows      map[string]*flow // by site
	sampledMs  int64            // log time of the last sample, 0 = none
	candidates []command.JobID
	again      command.JobID // to be followed once more, Num 0 = none
	open       map[command.JobID][]guess
	kinds      [kindCount]kind
	learnt     bool // something that is to be kept
}

// Kinds part estimates by whether the job was just submitted or had waited: those that wait
// long are most of those that wait at some moment.
const (
	kindFresh = iota
	kindWaited
	kindCount
)

// kind is how estimates of one kind came out.
type kind struct {
	bands  [bandCount]band
	level  float64 // of the ratios, aimed at for P90
	judged []bool  // ring of whether P90 held
	next   int
	held   int
}

func kindOf(v *fsm.WhyView) int {
	if v.TimeMs-v.QueuedMs > freshMs {
		return kindWaited
	}
	return kindFresh
}

// guess is an estimate whose start has not been seen.
type guess struct {
	atMs int64
	base float64 // ms
	p90  float64 // ms
	kind int
	band int
	late bool // counted as failed already
	// learns: too little was known to tell it, so it is not judged.
	learns bool
}

// NewEstimator returns one that knows nothing yet.
func NewEstimator() *Estimator {
	e := &Estimator{flows: map[string]*flow{}, open: map[command.JobID][]guess{}}
	for i := range e.kinds {
		e.kinds[i].level = 0.9
	}
	return e
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
	case fsm.EventTaskEnded, fsm.EventTaskRequeued, fsm.EventTaskHeld, fsm.EventTaskDelivering:
		if ev.Site != "" && frees(ev.End) && !ev.Delivered {
			e.flow(ev.Site).add(ev.Time, use{freed: ev.Need.MilliCPU, ends: 1})
			e.learnt = true
		}
	case fsm.EventJobEnded: // cancelled before it started: nothing is learnt
		for _, g := range e.open[ev.Job] {
			e.bandOf(&g).open--
		}
		delete(e.open, ev.Job)
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
		e.openGuesses(s, id)
	}
	e.candidates = e.candidates[:0]
	e.late(now)
}

// openGuesses opens an estimate of a job that waits: one of a job that was just submitted, more
// of one that waits on.
func (e *Estimator) openGuesses(s *fsm.State, id command.JobID) {
	v, ok := s.Why(id)
	if !ok || v.Waiting == 0 {
		return
	}
	base, order, unknown := e.base(&v)
	g := guess{atMs: v.TimeMs, base: base, kind: kindOf(&v), band: bandOf(order)}
	b := e.bandOf(&g)
	switch {
	case unknown != "", b.open == maxOpen:
		return
	case g.kind == kindFresh && len(e.open[id]) > 0:
		return
	case g.kind == kindWaited && float64(g.atMs-b.openedMs)*waitedAtATime < base:
		return
	}
	b.open++
	b.openedMs = g.atMs
	q := e.quantiles(g.kind, order, v.TimeMs)
	if g.p90, g.learns = base*q.p90, q.of == 0; g.learns {
		g.p90 = base * gammaRatio(order, 1.2816) * startSlack
	}
	e.open[id] = append(e.open[id], g)
}

func (e *Estimator) bandOf(g *guess) *band { return &e.kinds[g.kind].bands[g.band] }

// nominate has a job followed with the next sample. Of more than maxCandidates in a second
// those with the least hash are, whichever came first: the last ones of a burst do not wait
// as its others do.
func (e *Estimator) nominate(id command.JobID) {
	if slices.Contains(e.candidates, id) {
		return
	}
	e.candidates = append(e.candidates, id)
	if len(e.candidates) > maxCandidates {
		slices.SortFunc(e.candidates, func(a, b command.JobID) int {
			return cmp.Compare(fsm.Mix(a.Num),
				fsm.Mix(b.Num))
		})
		e.candidates = e.candidates[:maxCandidates]
	}
}

// askAgain follows one of the jobs with several tasks, and one of those that wait still, at
// fixed times.
func (e *Estimator) askAgain(now int64) {
	if now/againEvery == e.sampledMs/againEvery {
		return
	}
	if e.again.Num > 0 {
		e.nominate(e.again)
		e.again = command.JobID{}
	}
	var chosen command.JobID
	least := uint64(math.MaxUint64)
	for id := range e.open { // in any order: the least is taken
		lot := fsm.Mix(fsm.Mix(id.Num) ^ uint64(now))
		if chosen.Num == 0 || lot < least || lot == least && id.Site < chosen.Site {
			chosen, least = id, lot
		}
	}
	if chosen.Num > 0 && !slices.Contains(e.candidates, chosen) {
		e.candidates = append(e.candidates, chosen)
	}
}

// Estimate says when the job's next task will probably start.
func (e *Estimator) Estimate(v *fsm.WhyView) node.Estimate {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.ContainsFunc(v.Sites, func(x fsm.SiteWhy) bool { return x.Why == fsm.HinderedFree }) {
		return node.Estimate{Calibrated: true}
	}
	base, order, unknown := e.base(v)
	if unknown != "" {
		return node.Estimate{Unknown: unknown}
	}
	k := kindOf(v)
	q := e.quantiles(k, order, v.TimeMs)
	if q.of == 0 {
		return node.Estimate{Unknown: fmt.Sprintf("too few waits were seen to their end, %d of the %d that it takes", e.seen(), fewRatios)}
	}
	if held, of := e.kinds[k].heldLately(); of >= fewRatios && float64(held) < enoughHeld*float64(of) {
		return node.Estimate{Unknown: fmt.Sprintf("of the last %d only %d started within their p90: waits are not now what they were", of, held)}
	}
	return node.Estimate{P50: inMs(base * q.p50), P90: inMs(base * q.p90), Waits: q.of, Calibrated: q.same}
}

// inMs turns milliseconds into a duration of at most ten years.
func inMs(ms float64) time.Duration {
	return time.Duration(min(ms, command.MaxTimeoutMs)) * time.Millisecond
}

// base returns the mean wait in ms by the fluid model, and how many tasks of this
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

// hazard returns how many of the milli-cores in use at the sites fall free in a
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

// frees reports whether an attempt that ended so had taken its machine.
func frees(e fsm.Ending) bool {
	switch e {
	case fsm.EndDeclined, fsm.EndUnopened, fsm.EndHandedBack, fsm.EndUnstarted, fsm.EndSuspected:
		return false
	default:
		return true
	}
}
