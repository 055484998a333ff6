package broker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

// A broker that was declared lost and cannot end a foreign task is not registered
// again. It is not ready, and does not keep the leadership: it would judge nobody.
func TestUnregisteredLeaderHandsOver(t *testing.T) {
	sites := startSites(t, 1, 1, 1)
	a, b := sites[0], sites[1]
	b.accept(t, sleepJob)
	<-b.handler.started
	id := b.foreignTaskAt(t, a, sites[2])
	if err := a.group.SetLead(b.name); err != nil {
		t.Fatal(err)
	}
	b.orderLoss(t, a)
	if err := a.Ready(); !errors.Is(err, node.ErrNotReady) {
		t.Errorf("ready while it is lost: %v", err)
	}
	<-a.handler.stopped
	if err := a.group.SetLead(a.name); err != nil {
		t.Fatal(err)
	}
	a.awaitLeader(t, func(leader string) bool { return leader != a.name })

	// The task ends: the site is back, and may lead.
	a.handler.end(id, executor.Result{Cause: executor.Stopped})
	a.await(t, func(s *fsm.State) bool {
		state, _ := s.SiteState(a.name)
		return state == fsm.Alive
	})
}

// foreignTaskAt submits jobs until one runs at a site; those at another end at once.
func (s *testSite) foreignTaskAt(t *testing.T, at, other *testSite) executor.ID {
	t.Helper()
	for {
		s.accept(t, sleepJob)
		select {
		case id := <-at.handler.started:
			return id
		case <-other.handler.started:
		}
	}
}

// orderLoss has a leader order the loss of a site, and waits until that site knows.
func (s *testSite) orderLoss(t *testing.T, of *testSite) {
	t.Helper()
	r := coord.Renewal{Site: of.name, Incarnation: of.registrar.incarnation()}
	term := s.log.Status().Term
	s.post(core.VerdictEvent{Verdicts: core.Verdicts{Term: term, Lost: []coord.Renewal{r}}})
	of.await(t, func(st *fsm.State) bool {
		state, _ := st.SiteState(of.name)
		return state == fsm.SiteGone
	})
}

func (s *testSite) awaitLeader(t *testing.T, ok func(leader string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !ok(s.group.Lead()) {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("%s leads on", s.group.Lead())
		}
	}
}

func TestFitnessWaitsForARegistration(t *testing.T) {
	const patience = time.Second
	var f fitness
	now := time.Unix(1_700_000_000, 0)
	outside := errors.New("not registered")
	for _, x := range []struct {
		after   time.Duration
		outside error
		want    string
	}{
		{0, outside, ""}, // it has just started
		{patience - 1, outside, ""},
		{0, nil, ""},
		{time.Hour, outside, ""}, // it was just lost
		{patience, outside, "not registered"},
		{time.Hour, outside, "not registered"},
		{0, nil, ""},
	} {
		now = now.Add(x.after)
		if got := f.unfitReason(x.outside, now, patience); got != x.want {
			t.Errorf("outside for %v: %q, want %q", x.outside, got, x.want)
		}
	}
}
