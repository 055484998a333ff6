package sim

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
)

// A replica at every site gives the same schedule as one that all look at, and all
// end in the same state.
func TestReplicasAgree(t *testing.T) {
	w := sample(t)
	for _, scenario := range []Scenario{Equal, Zipf, Background} {
		s := DefaultSetup()
		s.Scenario, s.Load = scenario, 1.5
		in, err := w.Instance(&s, 3600, 0)
		if err != nil {
			t.Fatal(err)
		}
		in.obey(Rules{})
		want, err := Play(&in.Case)
		if err != nil {
			t.Fatal(err)
		}
		var states []*fsm.State
		for range in.Cores {
			states = append(states, fsm.New())
		}
		got, err := play(&in.Case, states...)
		if err != nil || got.Hash != want.Hash || !slices.Equal(got.Start, want.Start) || !slices.Equal(got.Site, want.Site) {
			t.Errorf("scenario %d: another schedule with a replica at every site: %v", scenario, err)
		}
		for i, state := range states {
			if state.Index() != want.Entries || state.Hash() != want.Hash {
				t.Errorf("scenario %d: %s is at entry %d of %d, or has another state", scenario, SiteName(i), state.Index(), want.Entries)
			}
		}
	}
}
