package node

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/notefile"
)

const (
	// estimatesFile is in the data directory.
	estimatesFile     = "estimates.json"
	maxEstimatesBytes = 64 << 20
	// maxFlows sites' rates are read back.
	maxFlows = 10_000
)

// keptEstimates is what outlives a restart: all but the estimates whose start
// was not seen, which nobody can judge any more.
type keptEstimates struct {
	Level  float64
	Judged []bool               // oldest first
	Ratios [bandCount][]float64 // oldest first
	Flows  map[string]keptFlow  // by site
}

// keptFlow is a site's use.
type keptFlow struct{ Fine, Coarse []keptUse }

// keptUse is the use of one interval of a series that is not empty.
type keptUse struct {
	N     int64 // the interval's number
	Freed int64
	Ends  int
	Held  float64
}

// KeepEstimates has the broker remember in a data directory how its estimates
// came out and what they learn from, over restarts. It is called before Start.
func (b *Broker) KeepEstimates(dir string) { b.estimatesPath = filepath.Join(dir, estimatesFile) }

// recallEstimates takes what the last start has left. The state is current.
func (b *Broker) recallEstimates() {
	if b.estimatesPath == "" {
		return
	}
	var k keptEstimates
	found, err := notefile.Read(b.estimatesPath, maxEstimatesBytes, &k)
	if err == nil && found {
		var now int64
		b.cfg.Replica.View(func(s *fsm.State) { now = s.Time() })
		err = b.estimates.recall(&k, now)
	}
	if err != nil {
		b.cfg.Logger.Warn().Err(err).Str("file", b.estimatesPath).Msg("estimates of starts begin anew")
	}
}

// noteEstimates writes what was learnt, if there is anything new.
func (b *Broker) noteEstimates() {
	if b.estimatesPath == "" || !b.estimates.hasLearnt() {
		return
	}
	if err := notefile.Write(b.estimatesPath, b.estimates.kept()); err != nil {
		b.cfg.Logger.Warn().Err(err).Msg("after a restart estimates of starts may begin anew")
	}
}

// hasLearnt reports whether something is new since it was asked last.
func (e *Estimator) hasLearnt() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.learnt
	e.learnt = false
	return was
}

func (e *Estimator) kept() keptEstimates {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := keptEstimates{Level: e.level, Judged: unrolled(e.judged, e.nextJudged), Flows: map[string]keptFlow{}}
	for i := range e.bands {
		k.Ratios[i] = unrolled(e.bands[i].ratios, e.bands[i].next)
	}
	for site, f := range e.flows {
		if x := (keptFlow{f.fine.kept(), f.coarse.kept()}); len(x.Coarse) > 0 {
			k.Flows[site] = x
		}
	}
	return k
}

// unrolled copies a ring, oldest first.
func unrolled[T any](ring []T, next int) []T { return slices.Concat(ring[next:], ring[:next]) }

func (s *series) kept() (out []keptUse) {
	for n := max(0, s.last-int64(len(s.slots))+1); n <= s.last; n++ {
		if u := s.slots[n%int64(len(s.slots))]; u != (use{}) {
			out = append(out, keptUse{n, u.freed, u.ends, u.held})
		}
	}
	return out
}

// recall takes what was kept if all of it is sound. What is later than the log
// is not the past of this state: its data were set back.
func (e *Estimator) recall(k *keptEstimates, now int64) error {
	if err := k.check(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.level = k.Level
	e.judged, e.nextJudged, e.held = k.Judged, 0, 0
	for _, held := range k.Judged {
		if held {
			e.held++
		}
	}
	for i := range e.bands {
		e.bands[i].ratios, e.bands[i].next = k.Ratios[i], 0
	}
	for site, x := range k.Flows {
		f := newFlow()
		f.fine.recall(x.Fine, now)
		f.coarse.recall(x.Coarse, now)
		e.flows[site] = f
	}
	return nil
}

func (s *series) recall(kept []keptUse, now int64) {
	for _, u := range kept {
		if u.N <= now/s.width {
			s.add(u.N*s.width, use{u.Freed, u.Ends, u.Held})
		}
	}
}

// check tells whether what a file holds can be used.
func (k *keptEstimates) check() error {
	if !(k.Level >= levelLow && k.Level <= levelHigh) || len(k.Judged) > maxJudged || len(k.Flows) > maxFlows {
		return fmt.Errorf("level %g, %d judged, %d sites", k.Level, len(k.Judged), len(k.Flows))
	}
	for i, ratios := range k.Ratios {
		if len(ratios) > maxRatios || slices.ContainsFunc(ratios, func(r float64) bool { return !(r >= 0 && r <= math.MaxFloat32) }) {
			return fmt.Errorf("ratios of band %d are out of bounds", i)
		}
	}
	empty := newFlow()
	for site, f := range k.Flows {
		if !fsm.ValidSite(site) || !empty.fine.holds(f.Fine) || !empty.coarse.holds(f.Coarse) {
			return fmt.Errorf("rates of site %.64q are out of bounds", site)
		}
	}
	return nil
}

// holds reports whether a series can take what was kept, oldest first.
func (s *series) holds(kept []keptUse) bool {
	ok := len(kept) <= len(s.slots)
	for i, u := range kept {
		ok = ok && u.N >= 0 && u.N <= maxDateMs && u.Freed >= 0 && u.Freed <= maxDateMs && u.Ends >= 0 && u.Ends <= math.MaxInt32 &&
			u.Held >= 0 && u.Held <= math.MaxFloat32 && (i == 0 || u.N > kept[i-1].N)
	}
	return ok
}
