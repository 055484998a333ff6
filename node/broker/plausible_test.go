package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node"
)

// TestDeclinesAreSeenAtEveryBroker: what a site does with other sites' tasks is counted at each broker, from the events
// of the log since its start.
func TestDeclinesAreSeenAtEveryBroker(t *testing.T) {
	sites := startSites(t, 1, 1)
	b := sites[1]
	b.stop(t)
	b.kind = func(h *fakeHandler) executor.Handler { return refusingFake{fencedFake{h}} }
	b.start(t)
	for _, s := range sites {
		s.awaitPlausible(t, func(v node.Plausibility) bool { return !v.Since.IsZero() })
	}
	sites[0].accept(t, `{"command":["sleep"],"sites":{"only":["site-2"]}}`)
	for _, s := range sites {
		s.awaitPlausible(t, func(v node.Plausibility) bool {
			return slices.ContainsFunc(v.Sites, func(x node.SitePlausibility) bool {
				return x.Site == "site-2" && x.Declined > 0 && x.Runs == 0 && len(x.Notes) == 0
			})
		})
	}
}

// awaitPlausible waits until what the broker has seen is so. It learns once a second, whether the state moves or not.
func (s *testSite) awaitPlausible(t *testing.T, is func(node.Plausibility) bool) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.After(time.Minute)
	for v := s.Plausibility(); !is(v); v = s.Plausibility() {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("%s has seen %+v", s.name, v)
		}
	}
}
