package broker

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
)

// The leader makes the first key of gossip, and another one when a member was banned that has it.
func TestLeaderMakesGossipKeys(t *testing.T) {
	sites := startMembers(t, 3)
	first := sites[0].awaitGossipKey(t, 1)
	if now := sites[1].awaitGossipKey(t, 1); now != first {
		t.Errorf("%+v at site-2, at site-1 %+v", now, first)
	}
	for _, s := range sites[:2] {
		motion := &command.Motion{What: command.MotionBan, Site: "site-3"}
		if r, err := s.order(t.Context(), "ban", motion); err != nil || r.Code != command.OK {
			t.Fatal(r, err)
		}
	}
	if next := sites[1].awaitGossipKey(t, 2); next.Key == first.Key || next.Exposed || next.Generation != 2 {
		t.Errorf("%+v after %+v", next, first)
	}
}

// awaitGossipKey waits until gossip has a key of a generation, and returns it.
func (s *testSite) awaitGossipKey(t *testing.T, generation uint64) (key roster.GossipKey) {
	t.Helper()
	s.await(t, func(st *fsm.State) bool {
		key = st.GossipKey()
		return key.Generation >= generation
	})
	return key
}
