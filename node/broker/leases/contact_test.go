package leases

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

var errRefused = fmt.Errorf("reach b: %w", syscall.ECONNREFUSED)

// leadingTracker leads, and site a's broker is this one; b has renewed.
func leadingTracker(t *testing.T) *testTracker {
	t.Helper()
	w := newTestTracker()
	for i := range w.sites {
		w.sites[i].Peer = w.sites[i].ID + ":7701"
	}
	w.SetTerm(1)
	w.Barrier(1)
	w.pass(0)
	if !w.renewAs("a", 1) || !w.renewAs("b", 1) {
		t.Fatal("renewal refused")
	}
	return w
}

// dialing lets time go by in which every dial ends so, and returns how many there were and what was judged first.
func (w *testTracker) dialing(d time.Duration, err error) (dials int, v core.Verdicts) {
	for ; d > 0; d -= core.TickEvery {
		for _, x := range w.Dials(w.sites, "a") {
			dials++
			w.Dialed(x, w.clock, err)
		}
		if now := w.stop(core.TickEvery); len(v.Suspect)+len(v.Lost) == 0 {
			v = now
		}
	}
	return dials, v
}

// state has the suspicions of a look executed.
func (w *testTracker) execute(v core.Verdicts) (entries int) {
	for state, of := range map[fsm.SiteState][]coord.Renewal{fsm.Suspected: v.Suspect, fsm.Alive: v.Trust} {
		for _, r := range of {
			for i := range w.sites {
				if x := &w.sites[i]; x.ID == r.Site && x.Incarnation == r.Incarnation {
					x.State = state
					entries++
				}
			}
		}
	}
	return entries
}

func TestKilledSiteIsSuspectedAtOnce(t *testing.T) {
	w := leadingTracker(t)
	if n, _ := w.dialing(testTiming.Lease/4, errRefused); n != 0 {
		t.Fatalf("%d dials of sites that nobody doubts", n)
	}
	w.Disconnected("b")
	dials, v := w.dialing(goneFor+2*core.TickEvery, errRefused)
	if len(v.Suspect) != 1 || v.Suspect[0].Site != "b" || len(v.Gone) != 1 {
		t.Fatalf("verdicts %+v, want b suspected", v)
	}
	if most := int(goneFor/dialEvery) + 1; dials > most {
		t.Errorf("%d dials, want at most %d", dials, most)
	}
	w.execute(v)
	if _, v = w.dialing(testTiming.Lease/4, nil); len(v.Trust) != 0 {
		t.Errorf("verdicts %+v: it has not renewed yet", v)
	}
	w.renewAs("b", 1)
	if v = w.stop(core.TickEvery); len(v.Trust) != 1 {
		t.Errorf("verdicts %+v, want b trusted again: it renews", v)
	}
}

func TestWhatIsNoSuspicion(t *testing.T) {
	for name, c := range map[string]struct {
		doubt func(w *testTracker)
		err   error
	}{
		"a broker that restarts or is paused takes connections": {func(w *testTracker) { w.Disconnected("b") }, nil},
		"gossip alone, somebody says that b is dead":            {func(w *testTracker) { w.gone = "b" }, nil},
		"silence without gossip's word, b may be behind a wall": {
			func(w *testTracker) { w.Disconnected("b") }, context.DeadlineExceeded,
		},
		"a broker that was told to stop, to start again some seconds later": {func(w *testTracker) {
			w.Disconnected("b")
			w.parted = "b"
		}, errRefused},
		"this broker's own trouble": {func(w *testTracker) { w.Disconnected("b") }, syscall.EMFILE},
	} {
		t.Run(name, func(t *testing.T) {
			w := leadingTracker(t)
			w.stop(core.TickEvery)
			c.doubt(w)
			if _, v := w.dialing(testTiming.Lease/2, c.err); len(v.Suspect) != 0 {
				t.Errorf("verdicts %+v", v)
			}
		})
	}
}

// A restart of a second: refused, and back before it counts.
func TestShortRestartIsNoSuspicion(t *testing.T) {
	w := leadingTracker(t)
	for range 3 {
		w.stop(core.TickEvery)
		w.renewAs("a", 1)
		w.renewAs("b", 1)
		w.stop(core.TickEvery)
		w.Disconnected("b")
		_, v := w.dialing(goneFor-dialEvery, errRefused)
		_, then := w.dialing(dialEvery+core.TickEvery, nil)
		if len(v.Suspect)+len(then.Suspect) != 0 {
			t.Fatalf("verdicts %+v, %+v", v, then)
		}
	}
}

func TestHostThatIsGoneIsSuspectedWithGossip(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, syscall.EHOSTUNREACH} {
		w := leadingTracker(t)
		w.stop(core.TickEvery)
		w.gone = "b"
		if _, v := w.dialing(testTiming.Lease/2, err); len(v.Suspect) != 1 {
			t.Errorf("%v: verdicts %+v, want b suspected", err, v)
		}
	}
}

// A broker that was told to stop is suspected for its silence, a little sooner than one that says nothing.
func TestPartedSiteIsSuspectedByItsLease(t *testing.T) {
	w := leadingTracker(t)
	w.parted = "b"
	w.pass(testTiming.Lease / 2)
	w.renewAs("a", 1)
	if _, v := w.dialing(testTiming.Lease/8+core.TickEvery, errRefused); len(v.Suspect) != 1 || len(v.Gone) != 0 {
		t.Errorf("verdicts %+v, want b suspected for its silence", v)
	}
}

// A site whose gossip is blocked, or of which somebody claims that it is dead, renews: it is let alone.
func TestGossipsWordEndsWithARenewal(t *testing.T) {
	w := leadingTracker(t)
	w.stop(core.TickEvery)
	w.gone = "b"
	w.stop(core.TickEvery)
	w.renewAs("b", 1)
	w.renewAs("a", 1)
	if n, v := w.dialing(testTiming.Lease/2, errRefused); n != 0 || len(v.Suspect) != 0 {
		t.Errorf("%d dials, verdicts %+v", n, v)
	}
}

// The former leader's own site is the one that is dead most likely. Nobody had a connection to end.
func TestNewLeaderDialsWhomItHasNotHeard(t *testing.T) {
	w := leadingTracker(t)
	w.SetTerm(2)
	w.Barrier(2)
	w.sites[1].State = fsm.Suspected
	if v := w.stop(0); len(v.Trust) != 0 {
		t.Fatalf("verdicts %+v: the suspicion of a former leader ends when the site renews", v)
	}
	w.sites[1].State = fsm.Alive
	if _, v := w.dialing(goneFor+2*core.TickEvery, errRefused); len(v.Suspect) != 1 || v.Suspect[0].Site != "b" {
		t.Errorf("verdicts %+v, want b suspected", v)
	}
	w.SetTerm(3)
	w.Barrier(3)
	if n, v := w.dialing(testTiming.Lease/2, nil); n != 1 || len(v.Suspect) != 0 {
		t.Errorf("%d dials, verdicts %+v: it answers", n, v)
	}
}

// A dial that was under way when this broker was paused, or when the site renewed, says nothing.
func TestOldDialsSayNothing(t *testing.T) {
	for what, meanwhile := range map[string]func(w *testTracker){
		"a renewal": func(w *testTracker) { w.stop(core.TickEvery); w.renewAs("b", 1) },
		"a pause":   func(w *testTracker) { w.stop(time.Hour) },
		"a term":    func(w *testTracker) { w.SetTerm(2); w.Barrier(2); w.stop(0) },
		"a moment without the leadership": func(w *testTracker) {
			w.SetTerm(0)
			w.SetTerm(1)
			w.Barrier(1)
			w.stop(0)
		},
	} {
		w := leadingTracker(t)
		w.stop(core.TickEvery)
		w.Disconnected("b")
		began, due := w.clock, w.Dials(w.sites, "a")
		if len(due) != 1 {
			t.Fatalf("%s: dials %+v", what, due)
		}
		meanwhile(w)
		w.Dialed(due[0], began, errRefused)
		if !w.Tracker.sites[due[0].Of].failing.IsZero() {
			t.Errorf("%s in between, and the dial counts", what)
		}
		if w.dials != 0 {
			t.Errorf("%s in between, and %d dials are under way", what, w.dials)
		}
	}
}

// What a site, or somebody who speaks of it, may do.
var (
	flaps    = []string{"renew", "end", "miss", "refuse", "answer", "register", "wait", "wait"}
	failures = []error{errRefused, context.DeadlineExceeded, errors.New("own trouble")}
)

// Whatever a site does to be suspected and trusted by turns, restarts as another incarnation among it: that leaves few
// entries. Its loss is declared exactly by its renewals.
func TestFlappingLeavesFewEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTestTracker()
		w.sites = w.sites[1:]
		w.sites[0].Peer = "b:7701"
		w.SetTerm(1)
		w.Barrier(1)
		began, entries, incarnations := w.clock, 0, 0
		renewed := w.clock
		answer := errRefused
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			switch rapid.SampledFrom(flaps).Draw(t, "step") {
			case "renew":
				r := coord.Renewal{Site: "b", Incarnation: w.sites[0].Incarnation}
				if w.Received(r, 1) && w.Confirmed(r, 1) {
					renewed = w.clock
				}
			case "end":
				w.Disconnected("b")
			case "miss":
				w.gone = rapid.SampledFrom([]string{"", "b"}).Draw(t, "missed")
				w.parted = rapid.SampledFrom([]string{"", "", "b"}).Draw(t, "parted")
			case "refuse":
				answer = rapid.SampledFrom(failures).Draw(t, "error")
			case "answer":
				answer = nil
			case "register":
				incarnations++
				w.sites[0].Incarnation++
				w.sites[0].State, renewed = fsm.Alive, w.clock
			case "wait":
			}
			for range rapid.IntRange(1, 30).Draw(t, "looks") {
				for _, d := range w.Dials(w.sites, "a") {
					w.Dialed(d, w.clock, answer)
				}
				v := w.stop(core.TickEvery)
				if lost := len(v.Lost) > 0; lost != (w.clock.Sub(renewed) > testTiming.Lease+testTiming.Margin) {
					t.Fatalf("lost %v, %s after its last renewal", lost, w.clock.Sub(renewed))
				} else if lost { // it comes back
					incarnations++
					w.sites[0].Incarnation++
					w.sites[0].State, renewed = fsm.Alive, w.clock
				}
				entries += w.execute(v)
			}
		}
		// A lease, and three quarters of one, end in a suspicion each; so may each registration, an entry itself.
		took := w.clock.Sub(began)
		if most := 2*(1+int(took*7/3/testTiming.Lease)) + 2*incarnations; entries > most {
			t.Fatalf("%d entries in %s with %d registrations, want at most %d", entries, took, incarnations, most)
		}
	})
}
