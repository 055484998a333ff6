package node

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
)

var testTiming = Timing{Lease: 6 * time.Second, Margin: time.Second, Grace: time.Second}

// testWarden is a warden on a clock that the test moves.
type testWarden struct {
	*warden
	clock time.Time
	sites []fsm.SiteView
	gone  string // what gossip does not see
}

func newTestWarden() *testWarden {
	w := &testWarden{clock: time.Unix(1_700_000_000, 0)}
	w.warden = newWarden(func() time.Time { return w.clock }, w.siteState)
	w.sites = []fsm.SiteView{{ID: "a", Incarnation: 1}, {ID: "b", Incarnation: 1}}
	return w
}

func (w *testWarden) siteState(site string) (fsm.SiteState, uint64) {
	for _, x := range w.sites {
		if x.ID == site {
			return x.State, x.Incarnation
		}
	}
	return fsm.Alive, 0
}

// pass lets time go by, with a look now and then, and returns what the last one says,
// and what was logged meanwhile.
func (w *testWarden) pass(d time.Duration) verdicts {
	var said []coord.Renewal
	for ; d > tickEvery; d -= tickEvery {
		said = append(said, w.stop(tickEvery).say...)
	}
	v := w.stop(d)
	v.say = append(said, v.say...)
	return v
}

// stop lets time go by without a look.
func (w *testWarden) stop(d time.Duration) verdicts {
	w.clock = w.clock.Add(d)
	return w.look(w.sites, testTiming, func(site string) bool { return site == w.gone })
}

func (w *testWarden) renewAs(site string, term uint64) bool {
	r := coord.Renewal{Site: site, Incarnation: 1}
	return w.Received(r, term) && w.Confirmed(r, term)
}

func TestNewLeadWaitsAFullLease(t *testing.T) {
	w := newTestWarden()
	w.lead(3)
	if v := w.pass(time.Hour); len(v.lost) != 0 {
		t.Fatal("a lead without its barrier judged")
	}
	w.barrier(3)
	w.pass(0)
	if v := w.pass(testTiming.Lease + testTiming.Margin); len(v.lost) != 0 {
		t.Fatal("the lead judged before the former lead's leases were over")
	}
	if !w.renewAs("b", 3) {
		t.Fatal("renewal refused")
	}
	v := w.pass(time.Millisecond)
	if len(v.lost) != 1 || v.lost[0].Site != "a" || v.term != 3 {
		t.Fatalf("verdicts %+v, want the loss of a in term 3", v)
	}
}

func TestCondemnedSiteGetsNoLease(t *testing.T) {
	w := newTestWarden()
	w.lead(1)
	w.barrier(1)
	w.pass(0)
	a := coord.Renewal{Site: "a", Incarnation: 1}
	w.pass(testTiming.Lease + testTiming.Margin)
	if !w.Received(a, 1) { // it arrives in the last moment and is being confirmed
		t.Fatal("renewal refused before the loss")
	}
	if v := w.pass(time.Millisecond); len(v.lost) == 0 {
		t.Fatal("no loss")
	}
	if w.Confirmed(a, 1) {
		t.Error("a renewal was acknowledged after the loss was proposed")
	}
	if w.Received(a, 1) {
		t.Error("a condemned incarnation renews")
	}
	w.sites[0].Incarnation = 2
	if !w.Received(coord.Renewal{Site: "a", Incarnation: 2}, 1) {
		t.Error("the next incarnation is refused")
	}
	w.sites[0].Incarnation = 1
	if v := w.pass(time.Second); len(v.lost) == 0 {
		t.Error("a loss that did not come through is not proposed again")
	}
	w.lead(2) // another term knows nothing of it: the proposal died with its term
	if !w.Received(a, 2) {
		t.Error("the next term's lead refuses a site that was never lost")
	}
}

func TestOnlyTheLeadOfTheTermGrants(t *testing.T) {
	w := newTestWarden()
	if w.renewAs("a", 0) {
		t.Error("a follower grants")
	}
	if !w.renewAs("a", 2) {
		t.Error("a lead refuses that has not looked around yet")
	}
	if w.renewAs("a", 1) {
		t.Error("an acknowledgement of a former term")
	}
	r := coord.Renewal{Site: "a", Incarnation: 1}
	w.Received(r, 2)
	w.lead(0) // deposed while it confirms
	if w.Confirmed(r, 2) {
		t.Error("a deposed lead grants")
	}
}

func TestSuspicionRestsOffersAndEnds(t *testing.T) {
	w := newTestWarden()
	w.lead(1)
	w.barrier(1)
	w.pass(0)
	w.renewAs("a", 1)
	w.gone = "b"
	if v := w.pass(testTiming.Lease * 2 / 3); len(v.suspect) != 1 || v.suspect[0].Site != "b" {
		t.Fatalf("verdicts %+v, want b suspected on gossip's word", v)
	}
	w.sites[1].State = fsm.Suspected
	w.gone = ""
	w.renewAs("b", 1)
	if v := w.pass(time.Millisecond); len(v.trust) != 1 || v.trust[0].Site != "b" {
		t.Fatalf("verdicts %+v, want b trusted again", v)
	}
	w.sites[1].State = fsm.Alive
	w.renewAs("a", 1)
	if v := w.pass(testTiming.Lease * 4 / 5); len(v.suspect) != 2 {
		t.Errorf("verdicts %+v, want both suspected for their silence", v)
	}
	w.sites[0].State = fsm.SiteGone
	if v := w.pass(time.Hour); len(v.lost) != 1 {
		t.Errorf("verdicts %+v: a lost site is lost once", v)
	}
}

// A later leader never condemned the incarnation that a former one's SiteLost has
// ended; the state tells.
func TestLaterLeaderRenewsNoLostIncarnation(t *testing.T) {
	w := newTestWarden()
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
	w := newTestWarden()
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
	w := newTestWarden()
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
	w := newTestWarden()
	w.lead(1)
	w.barrier(1)
	w.pass(0)
	said := len(w.pass(testTiming.Lease + 2*testTiming.Margin).say)
	if said != 2 {
		t.Errorf("%d of 2 losses logged at once", said)
	}
	for range 100 {
		v := w.pass(tickEvery)
		if len(v.lost) != 2 {
			t.Fatalf("%d of 2 losses proposed again", len(v.lost))
		}
		said += len(v.say)
	}
	if said != 4 {
		t.Errorf("%d lines in %s, want 4", said, 100*tickEvery)
	}
}

// A leader that was paused past the lease and is the leader still (the only voter, say)
// condemned every site that it could not hear meanwhile.
func TestOwnPauseIsNobodysSilence(t *testing.T) {
	w := newTestWarden()
	w.lead(1)
	w.barrier(1)
	w.pass(0)
	w.pass(testTiming.Lease)
	w.renewAs("a", 1)
	w.renewAs("b", 1)
	w.pass(testTiming.Lease / 2)
	w.clock = w.clock.Add(time.Hour)
	w.renewAs("b", 1) // heard behind the pause and before the first look
	if v := w.stop(0); len(v.lost)+len(v.suspect) != 0 {
		t.Fatalf("verdicts %+v: the leader was away, not the sites", v)
	}
	if v := w.pass(testTiming.Lease / 2); len(v.lost) != 0 {
		t.Fatalf("verdicts %+v: half a lease before the pause and half of one behind it", v)
	}
	v := w.pass(testTiming.Margin + time.Second)
	if len(v.lost) != 1 || v.lost[0].Site != "a" {
		t.Fatalf("verdicts %+v: a is silent for a lease and the margin while it was watched", v)
	}
	if v = w.pass(testTiming.Lease); len(v.lost) != 2 {
		t.Fatalf("verdicts %+v: b is, too", v)
	}
}

// A leader that is slow now and then still finds who is silent.
func TestShortPausesCountAsSilence(t *testing.T) {
	w := newTestWarden()
	w.lead(1)
	w.barrier(1)
	w.pass(0)
	lost := 0
	for range 8 {
		lost = len(w.stop(max(2*tickEvery, testTiming.Lease/4)).lost)
	}
	if lost != 2 {
		t.Errorf("%d of 2 silent sites are lost", lost)
	}
}
