package leases

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

var testTiming = node.Timing{Lease: 6 * time.Second, Margin: time.Second, Grace: time.Second}

// testTracker is a lease tracker on a clock that the test moves.
type testTracker struct {
	*Tracker
	clock time.Time
	sites []fsm.SiteView
	gone  string // what gossip does not see
	// parted has said that it stops.
	parted string
}

func newTestTracker() *testTracker {
	w := &testTracker{clock: time.Unix(1_700_000_000, 0)}
	w.Tracker = NewTracker(func() time.Time { return w.clock }, w.siteState)
	w.sites = []fsm.SiteView{{ID: "a", Incarnation: 1}, {ID: "b", Incarnation: 1}}
	return w
}

func (w *testTracker) siteState(site string) (fsm.SiteState, uint64) {
	for _, x := range w.sites {
		if x.ID == site {
			return x.State, x.Incarnation
		}
	}
	return fsm.Alive, 0
}

// pass lets time go by, with a look now and then, and returns what the last one says,
// and what was logged meanwhile.
func (w *testTracker) pass(d time.Duration) core.Verdicts {
	var said []coord.Renewal
	for ; d > core.TickEvery; d -= core.TickEvery {
		said = append(said, w.stop(core.TickEvery).Say...)
	}
	v := w.stop(d)
	v.Say = append(said, v.Say...)
	return v
}

// stop lets time go by without a look.
func (w *testTracker) stop(d time.Duration) core.Verdicts {
	w.clock = w.clock.Add(d)
	said := map[string]Word{w.gone: Missed, w.parted: Parted}
	return w.JudgeSites(w.sites, testTiming, func(site string) Word { return said[site] })
}

func (w *testTracker) renewAs(site string, term uint64) bool {
	r := coord.Renewal{Site: site, Incarnation: 1}
	return w.Received(r, term) && w.Confirmed(r, term)
}

func TestNewLeadWaitsAFullLease(t *testing.T) {
	w := newTestTracker()
	w.SetTerm(3)
	if v := w.pass(time.Hour); len(v.Lost) != 0 {
		t.Fatal("a leader without its barrier judged")
	}
	w.Barrier(3)
	w.pass(0)
	if v := w.pass(testTiming.Lease + testTiming.Margin); len(v.Lost) != 0 {
		t.Fatal("the leader judged before the former leader's leases were over")
	}
	if !w.renewAs("b", 3) {
		t.Fatal("renewal refused")
	}
	v := w.pass(time.Millisecond)
	if len(v.Lost) != 1 || v.Lost[0].Site != "a" || v.Term != 3 {
		t.Fatalf("verdicts %+v, want the loss of a in term 3", v)
	}
}

func TestSiteToBeLostGetsNoLease(t *testing.T) {
	w := newTestTracker()
	w.SetTerm(1)
	w.Barrier(1)
	w.pass(0)
	a := coord.Renewal{Site: "a", Incarnation: 1}
	w.pass(testTiming.Lease + testTiming.Margin)
	if !w.Received(a, 1) { // it arrives in the last moment and is being confirmed
		t.Fatal("renewal refused before the loss")
	}
	if v := w.pass(time.Millisecond); len(v.Lost) == 0 {
		t.Fatal("no loss")
	}
	if w.Confirmed(a, 1) {
		t.Error("a renewal was acknowledged after the loss was proposed")
	}
	if w.Received(a, 1) {
		t.Error("an incarnation whose loss was proposed renews")
	}
	w.sites[0].Incarnation = 2
	if !w.Received(coord.Renewal{Site: "a", Incarnation: 2}, 1) {
		t.Error("the next incarnation is refused")
	}
	w.sites[0].Incarnation = 1
	if v := w.pass(time.Second); len(v.Lost) == 0 {
		t.Error("a loss that did not come through is not proposed again")
	}
	w.SetTerm(2) // another term knows nothing of it: the proposal died with its term
	if !w.Received(a, 2) {
		t.Error("the next term's lead refuses a site that was never lost")
	}
}

func TestOnlyTheLeadOfTheTermGrants(t *testing.T) {
	w := newTestTracker()
	if w.renewAs("a", 0) {
		t.Error("a follower grants")
	}
	if !w.renewAs("a", 2) {
		t.Error("a leader refuses that has not looked around yet")
	}
	if w.renewAs("a", 1) {
		t.Error("an acknowledgement of a former term")
	}
	r := coord.Renewal{Site: "a", Incarnation: 1}
	w.Received(r, 2)
	w.SetTerm(0) // deposed while it confirms
	if w.Confirmed(r, 2) {
		t.Error("a deposed leader grants")
	}
}

func TestSuspicionRestsOffersAndEnds(t *testing.T) {
	w := newTestTracker()
	w.SetTerm(1)
	w.Barrier(1)
	w.pass(0)
	w.renewAs("a", 1)
	w.gone = "b"
	if v := w.pass(testTiming.Lease * 2 / 3); len(v.Suspect) != 0 {
		t.Fatalf("verdicts %+v on gossip's word alone", v)
	}
	w.gone = ""
	w.renewAs("a", 1)
	if v := w.pass(testTiming.Lease / 5); len(v.Suspect) != 1 || v.Suspect[0].Site != "b" {
		t.Fatalf("verdicts %+v, want b suspected for its silence", v)
	}
	w.sites[1].State = fsm.Suspected
	w.renewAs("b", 1)
	if v := w.pass(time.Millisecond); len(v.Trust) != 1 || v.Trust[0].Site != "b" {
		t.Fatalf("verdicts %+v, want b trusted again", v)
	}
	w.sites[1].State = fsm.Alive
	w.renewAs("a", 1)
	if v := w.pass(testTiming.Lease * 4 / 5); len(v.Suspect) != 2 {
		t.Errorf("verdicts %+v, want both suspected for their silence", v)
	}
	w.sites[0].State = fsm.SiteGone
	if v := w.pass(time.Hour); len(v.Lost) != 1 {
		t.Errorf("verdicts %+v: a lost site is lost once", v)
	}
}

// A later leader never proposed the loss of the incarnation that a former one's SiteLost has
// ended; the state tells.
func TestLaterLeaderRenewsNoLostIncarnation(t *testing.T) {
	w := newTestTracker()
	w.sites[0].State = fsm.SiteGone
	w.sites[1].Incarnation = 2
	for _, site := range []string{"a", "b"} {
		if w.Received(coord.Renewal{Site: site, Incarnation: 1}, 5) {
			t.Errorf("the renewal of a lost or superseded incarnation of %s is taken", site)
		}
	}
	if r := (coord.Renewal{Site: "b", Incarnation: 2}); !w.Received(r, 5) || !w.Confirmed(r, 5) {
		t.Error("the registered incarnation is refused")
	}
	w.sites[1].State = fsm.Left
	if w.Received(coord.Renewal{Site: "b", Incarnation: 2}, 5) {
		t.Error("a site that has left renews")
	}
	if w.Received(coord.Renewal{Site: "nobody"}, 5) {
		t.Error("a site that never registered renews")
	}
}

// A site may know of its registration before the leader has applied it. It is not
// refused for good, and nothing is granted that the state does not know.
func TestRenewalBeforeTheRegistrationIsApplied(t *testing.T) {
	w := newTestTracker()
	r := coord.Renewal{Site: "a", Incarnation: 2}
	if !w.Received(r, 5) {
		t.Error("a renewal of an incarnation to come is not waited for")
	}
	if w.Confirmed(r, 5) {
		t.Error("an incarnation that the state does not know has a lease")
	}
	w.sites[0].Incarnation = 2
	if !w.Received(r, 5) || !w.Confirmed(r, 5) {
		t.Error("refused though it is registered")
	}
}

// Lost between receipt and confirmation by an entry of this term.
func TestLostWhileItIsConfirmed(t *testing.T) {
	w := newTestTracker()
	r := coord.Renewal{Site: "a", Incarnation: 1}
	if !w.Received(r, 5) {
		t.Fatal("refused")
	}
	w.sites[0].State = fsm.SiteGone
	if w.Confirmed(r, 5) {
		t.Error("a lost site has a lease")
	}
}

func TestALossIsLoggedNowAndThen(t *testing.T) {
	w := newTestTracker()
	w.SetTerm(1)
	w.Barrier(1)
	w.pass(0)
	said := len(w.pass(testTiming.Lease + 2*testTiming.Margin).Say)
	if said != 2 {
		t.Errorf("%d of 2 losses logged at once", said)
	}
	for range 100 {
		v := w.pass(core.TickEvery)
		if len(v.Lost) != 2 {
			t.Fatalf("%d of 2 losses proposed again", len(v.Lost))
		}
		said += len(v.Say)
	}
	if said != 4 {
		t.Errorf("%d lines in %s, want 4", said, 100*core.TickEvery)
	}
}

// A leader that was paused past the lease and is the leader still (the only voter, say)
// proposed the loss of every site that it could not hear meanwhile.
func TestOwnPauseIsNobodysSilence(t *testing.T) {
	w := newTestTracker()
	w.SetTerm(1)
	w.Barrier(1)
	w.pass(0)
	w.pass(testTiming.Lease)
	w.renewAs("a", 1)
	w.renewAs("b", 1)
	w.pass(testTiming.Lease / 2)
	w.clock = w.clock.Add(time.Hour)
	w.renewAs("b", 1) // heard behind the pause and before the first look
	if v := w.stop(0); len(v.Lost)+len(v.Suspect) != 0 {
		t.Fatalf("verdicts %+v: the leader was away, not the sites", v)
	}
	if v := w.pass(testTiming.Lease / 2); len(v.Lost) != 0 {
		t.Fatalf("verdicts %+v: half a lease before the pause and half of one behind it", v)
	}
	v := w.pass(testTiming.Margin + time.Second)
	if len(v.Lost) != 1 || v.Lost[0].Site != "a" {
		t.Fatalf("verdicts %+v: a is silent for a lease and the margin while it was watched", v)
	}
	if v = w.pass(testTiming.Lease); len(v.Lost) != 2 {
		t.Fatalf("verdicts %+v: b is, too", v)
	}
}

// A leader that is slow now and then still finds who is silent.
func TestShortPausesCountAsSilence(t *testing.T) {
	w := newTestTracker()
	w.SetTerm(1)
	w.Barrier(1)
	w.pass(0)
	lost := 0
	for range 8 {
		lost = len(w.stop(max(2*core.TickEvery, testTiming.Lease/4)).Lost)
	}
	if lost != 2 {
		t.Errorf("%d of 2 silent sites are lost", lost)
	}
}
