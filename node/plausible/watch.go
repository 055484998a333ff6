package plausible

import (
	"math"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// HalfLife is after how long, in log time, what was seen counts half.
const HalfLife = 7 * 24 * time.Hour

const msPerHour = 3600_000

// Watch learns from the federation's events. Safe for concurrent use.
type Watch struct {
	mu    sync.Mutex
	since time.Time
	// sinceMs and nowMs are the log time at the first sample and at the latest.
	sinceMs, nowMs int64
	clock          clock
	begun          begun
	groups         groups
	sites          map[string]*tally
	turn           int               // counts the sites of which it was asked whether waiting tasks would fit
	view           node.Plausibility // as of the latest sample, if viewed
	viewed         bool
}

// tally is what was seen of one site, as of atMs: older counts have faded by then.
type tally struct {
	atMs                           int64
	runs, beyond, excessMs         float64
	declined, unstarted            float64
	lentHours, ranHours, idleHours float64 // core-hours
	slow                           contrast
	owners                         map[string]struct{} // of the jobs in slow
	sampledMs                      int64               // log time until which lentHours counts
	lent                           bool                // something, at the last sample
	wouldFit                       bool                // at the last time that it was asked
}

// New returns one that has seen nothing.
func New() *Watch {
	return &Watch{sites: map[string]*tally{}, begun: begun{}, groups: groups{}}
}

// Observe takes one event of the log.
func (w *Watch) Observe(ev *fsm.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		return
	}
	switch ev.Kind {
	case fsm.EventTaskStarted:
		w.begun.add(ev)
	case fsm.EventTaskEnded, fsm.EventTaskRequeued, fsm.EventTaskHeld, fsm.EventTaskDelivering:
		if ev.Site != "" && !ev.Delivered { // else its attempt has ended before
			w.ended(ev)
		}
	case fsm.EventJobEnded:
		w.close(ev.Job, ev.Time)
	case fsm.EventSiteForgotten:
		w.forget(ev.Site)
	default:
	}
}

// ended takes the end of an attempt.
func (w *Watch) ended(ev *fsm.Event) {
	startedMs, started := w.begun.take(ev)
	foreign, ran := ev.Job.Site != ev.Site, hasRun(ev)
	if ran && ev.End == fsm.EndSucceeded {
		w.compare(ev)
	}
	if !foreign {
		return
	}
	t := w.site(ev.Site, ev.Time)
	switch {
	case ran:
		t.runs++
		t.ranHours += float64(ev.RunMs) / msPerHour * cores(ev.Need.MilliCPU)
		if excess := w.beyond(ev, startedMs, started); excess > 0 {
			t.beyond++
			t.excessMs += float64(excess)
		}
	case ev.End == fsm.EndDeclined:
		t.declined++
	case ev.End == fsm.EndUnstarted:
		t.unstarted++
	}
}

// hasRun reports whether the attempt ran and its site said how long.
func hasRun(ev *fsm.Event) bool {
	switch ev.End {
	case fsm.EndDeclined, fsm.EndUnopened, fsm.EndHandedBack, fsm.EndUnstarted, fsm.EndSuspected, fsm.EndLost,
		fsm.NoEnding:
		return ev.RunMs > 0
	default:
		return ev.RunMs > 0 || ev.StartedMs >= 0
	}
}

// Sample takes what sites lend now. now is this broker's own clock: it shows when log time stood still.
func (w *Watch) Sample(s *fsm.State, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := s.Params()
	w.nowMs = s.Time()
	w.clock.sample(w.nowMs, now, p.LeaseMs+p.MarginMs)
	if w.since.IsZero() {
		w.since, w.sinceMs = now, w.nowMs
	}
	w.lend(s)
	w.viewed = false
}

// site returns a site's tally, faded to a moment.
func (w *Watch) site(name string, ms int64) *tally {
	t := w.sites[name]
	if t == nil {
		t = &tally{atMs: ms, owners: map[string]struct{}{}}
		w.sites[name] = t
	}
	t.fade(ms)
	return t
}

// fade has everything count less, for the time since.
func (t *tally) fade(ms int64) {
	if ms <= t.atMs {
		return
	}
	left := math.Exp2(-float64(ms-t.atMs) / float64(HalfLife.Milliseconds()))
	for _, v := range []*float64{
		&t.runs, &t.beyond, &t.excessMs, &t.declined, &t.unstarted, &t.lentHours, &t.ranHours, &t.idleHours,
	} {
		*v *= left
	}
	t.slow.scale(left)
	t.atMs = ms
}

func cores(milliCPU int64) float64 { return float64(milliCPU) / 1000 }
