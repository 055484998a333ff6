package estimate

import (
	"fmt"
	"math"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/notefile"
)

const (
	maxEstimatesBytes = 64 << 20
	// maxFlows sites' rates are read back.
	maxFlows = 10_000
	// maxKept bounds what is read of numbers of intervals and sums.
	maxKept = 1 << 52
)

// keptEstimates is what outlives a restart: all but the estimates whose start
// was not seen, which nobody can judge any more.
type keptEstimates struct {
	Kinds [kindCount]keptKind
	Flows map[string]keptFlow // by site
}

// keptKind is how estimates of one kind came out.
type keptKind struct {
	Level  float64
	Judged []bool               // oldest first
	Ratios [bandCount][]float64 // oldest first
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

// Load takes what Save has left in a file, if there is one. now is the log time of the
// state: what is later is not its past.
func (e *Estimator) Load(path string, now int64) error {
	var k keptEstimates
	found, err := notefile.Read(path, maxEstimatesBytes, &k)
	if err == nil && found {
		err = e.recall(&k, now)
	}
	return err
}

// Save writes what was learnt to a file, if anything is new since it was written last.
func (e *Estimator) Save(path string) error {
	if !e.hasLearnt() {
		return nil
	}
	return notefile.Write(path, e.kept())
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
	k := keptEstimates{Flows: map[string]keptFlow{}}
	for i := range e.kinds {
		from, to := &e.kinds[i], &k.Kinds[i]
		to.Level, to.Judged = from.level, unrolled(from.judged, from.next)
		for b := range from.bands {
			to.Ratios[b] = unrolled(from.bands[b].ratios, from.bands[b].next)
		}
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
	for i := range e.kinds {
		e.kinds[i].recall(&k.Kinds[i])
	}
	for site, x := range k.Flows {
		f := newFlow()
		f.fine.recall(x.Fine, now)
		f.coarse.recall(x.Coarse, now)
		e.flows[site] = f
	}
	return nil
}

func (k *kind) recall(kept *keptKind) {
	k.level, k.judged, k.next, k.held = kept.Level, kept.Judged, 0, 0
	for _, held := range kept.Judged {
		if held {
			k.held++
		}
	}
	for b := range k.bands {
		k.bands[b].ratios, k.bands[b].next = kept.Ratios[b], 0
	}
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
	if len(k.Flows) > maxFlows {
		return fmt.Errorf("%d sites", len(k.Flows))
	}
	for i := range k.Kinds {
		if err := k.Kinds[i].check(); err != nil {
			return err
		}
	}
	empty := newFlow()
	for site, f := range k.Flows {
		if !command.ValidSite(site) || !empty.fine.holds(f.Fine) || !empty.coarse.holds(f.Coarse) {
			return fmt.Errorf("rates of site %.64q are out of bounds", site)
		}
	}
	return nil
}

func (k *keptKind) check() error {
	if !(k.Level >= levelLow && k.Level <= levelHigh) || len(k.Judged) > maxJudged {
		return fmt.Errorf("level %g, %d judged", k.Level, len(k.Judged))
	}
	for i, ratios := range k.Ratios {
		if len(ratios) > maxRatios || slices.ContainsFunc(ratios,
			func(r float64) bool { return !(r >= 0 && r <= math.MaxFloat32) }) {
			return fmt.Errorf("ratios of band %d are out of bounds", i)
		}
	}
	return nil
}

// holds reports whether a series can take what was kept, oldest first.
func (s *series) holds(kept []keptUse) bool {
	ok := len(kept) <= len(s.slots)
	for i, u := range kept {
		ok = ok && u.N >= 0 && u.N <= maxKept && u.Freed >= 0 && u.Freed <= maxKept && u.Ends >= 0 &&
			u.Ends <= math.MaxInt32 &&
			u.Held >= 0 && u.Held <= math.MaxFloat32 && (i == 0 || u.N > kept[i-1].N)
	}
	return ok
}
