package archive

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// maxRecent bounds the ended attempts in memory, about 10 MB of them.
	maxRecent = 20_000
	// recentFor is how long they stay after their end.
	recentFor = 24 * time.Hour
	// mixedBy is how much later another attempt may be told of than one that ended
	// after it, without being put into order.
	mixedBy = 5 * time.Second
	// sampledFor is how far the ledger's course reaches back, maxStandings how
	// many standings of sites it holds at most.
	sampledFor   = 24 * time.Hour
	maxStandings = 200_000
)

// Recent holds the attempts of all sites of the last hours, those that run too,
// and the ledger's course, in memory. A restart of the broker goes on with the
// course (KeepCourse), with the attempts that its log still tells of, and with
// those of before that are archived. Home
// runs of other sites come when their sites report them, without an outcome.
// Names and labels are not kept. It is safe for concurrent use.
type Recent struct {
	mu      sync.RWMutex
	site    string
	open    map[taskKey]Attempt
	ended   ring[Attempt]
	mixed   bool // ended is not in the order of the ends
	samples []Sample
	held    int // standings in samples
	since   time.Time
	// course is the file that keeps the ledger's, "" = none; federation's.
	course, federation string
}

// NewRecent begins now, at a site's broker.
func NewRecent(site string, now time.Time) *Recent {
	return &Recent{site: site, open: map[taskKey]Attempt{}, ended: ring[Attempt]{most: maxRecent}, since: now}
}

// ring keeps the newest items.
type ring[T any] struct {
	items []T
	head  int // of the oldest, once full
	most  int
}

func (r *ring[T]) push(v T) {
	if len(r.items) < r.most {
		r.items = append(r.items, v)
		return
	}
	r.items[r.head] = v
	r.head = (r.head + 1) % r.most
}

// last returns the newest item, nil without any.
func (r *ring[T]) last() *T {
	if len(r.items) == 0 {
		return nil
	}
	return &r.items[(r.head+len(r.items)-1)%len(r.items)]
}

// newest yields items from the newest on.
func (r *ring[T]) newest(yield func(*T) bool) {
	for i := len(r.items) - 1; i >= 0; i-- {
		if !yield(&r.items[(r.head+i)%len(r.items)]) {
			return
		}
	}
}

// applyEvent takes what an event says of an attempt.
func (r *Recent) applyEvent(e *node.Event, a *Attempt, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := taskKey{e.Job, e.Task}
	switch {
	case e.Kind == fsm.EventTaskAssigned || e.Kind == fsm.EventTaskStarted:
		if _, ok := r.open[k]; ok || len(r.open) < maxOpen {
			r.open[k] = *a
		}
	case e.Kind == fsm.EventHomeRan && e.Job.Site == r.site:
		// its own event has told of it
	case ended:
		delete(r.open, k)
		if a.Number > 0 || e.Kind == fsm.EventHomeRan {
			r.keepEnded(a)
		}
	}
}

// forgetLog forgets the log's running attempts: what became of them is not known.
func (r *Recent) forgetLog() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.open {
		if a := r.open[k]; !a.Home {
			delete(r.open, k)
		}
	}
}

// Since returns when Recent began to watch; what happened before is known in part.
func (r *Recent) Since() time.Time { return r.since }

// Attempts returns copies of the attempts that ended at or after since or have
// not ended (Ended is zero), of one executor ("" = all), the latest end first,
// at most limit of them.
func (r *Recent) Attempts(since time.Time, site string, limit int) []Attempt {
	r.sortEnded()
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Attempt
	for _, a := range r.open {
		if site == "" || a.Site == site {
			a.EndedMs, a.ChargedMs = -1, 0
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b Attempt) int {
		return cmp.Or(b.Assigned.Compare(a.Assigned), cmp.Compare(a.Job.Site, b.Job.Site),
			cmp.Compare(a.Job.Num, b.Job.Num), cmp.Compare(a.Task, b.Task))
	})
	if oldest := time.Now().Add(-recentFor); since.Before(oldest) {
		since = oldest
	}
	for a := range r.ended.newest {
		if len(out) >= limit {
			break
		}
		if !a.Ended.Before(since) && (site == "" || a.Site == site) {
			out = append(out, *a)
		}
	}
	return out[:min(len(out), limit)]
}

// recall adds an attempt that ended before this start of the broker.
func (r *Recent) recall(a Attempt) {
	a.Name, a.Labels = "", nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepEnded(&a)
}

// keepEnded adds an attempt that ended. REQUIRES: r.mu held.
func (r *Recent) keepEnded(a *Attempt) {
	if last := r.ended.last(); last != nil && last.Ended.Sub(a.Ended) > mixedBy {
		r.mixed = true
	}
	r.ended.push(*a)
}

// sortEnded puts what was recalled among what the log has told since.
func (r *Recent) sortEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mixed {
		return
	}
	items := slices.Concat(r.ended.items[r.ended.head:], r.ended.items[:r.ended.head])
	slices.SortStableFunc(items, func(a, b Attempt) int { return a.Ended.Compare(b.Ended) })
	r.ended.items, r.ended.head, r.mixed = items, 0, false
}

// Standing is one site in the ledger at a moment, in the ledger's unit, rounded:
// for charts.
type Standing struct {
	Site                            string
	Contribution, Utility, Priority float64
}

// Sample is the ledger at a moment.
type Sample struct {
	At    time.Time
	Index uint64
	Unit  string
	Sites []Standing // by site
}

// Samples returns copies of the samples at or after since, oldest first.
func (r *Recent) Samples(since time.Time) []Sample {
	r.mu.RLock()
	defer r.mu.RUnlock()
	i, _ := slices.BinarySearchFunc(r.samples, since, func(s Sample, t time.Time) int { return s.At.Compare(t) })
	out := slices.Clone(r.samples[i:])
	for j := range out {
		out[j].Sites = slices.Clone(out[j].Sites)
	}
	return out
}

// SampleOf returns the ledger at a moment.
func SampleOf(l fsm.LedgerView, now time.Time) Sample {
	s := Sample{At: now, Index: l.Index, Unit: l.Unit, Sites: make([]Standing, 0, len(l.Sites))}
	for i := range l.Sites {
		x := &l.Sites[i]
		s.Sites = append(s.Sites, Standing{x.Site, rounded(x.Contribution), rounded(x.Utility), rounded(x.Priority)})
	}
	return s
}

// sample notes the ledger.
func (r *Recent) sample(now time.Time, l fsm.LedgerView) {
	s := SampleOf(l, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addSample(s)
	r.forget(now)
}

// addSample adds a sample. REQUIRES: r.mu held.
func (r *Recent) addSample(s Sample) {
	r.samples = append(r.samples, s)
	r.held += len(s.Sites)
}

// forget drops the samples that are too old or too many. REQUIRES: r.mu held.
func (r *Recent) forget(now time.Time) {
	drop := 0
	for drop < len(r.samples)-1 && (now.Sub(r.samples[drop].At) > sampledFor || r.held > maxStandings) {
		r.held -= len(r.samples[drop].Sites)
		drop++
	}
	r.samples = slices.Delete(r.samples, 0, drop)
}

// rounded reads a decimal of the ledger.
func rounded(decimal string) float64 {
	v, err := strconv.ParseFloat(decimal, 64)
	if err != nil {
		return 0
	}
	return v
}
