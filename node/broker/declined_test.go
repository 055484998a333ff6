package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// refusingFake takes nothing.
type refusingFake struct{ fencedFake }

// Start implements executor.Handler.
func (refusingFake) Start(context.Context, executor.Task) error {
	return fmt.Errorf("%w: image evil is not among those that this site allows", executor.ErrUnfit)
}

// TestDeclineIsTold: what a site said that handed a task back is known at every
// broker, in the job's reason and in the answer to why.
func TestDeclineIsTold(t *testing.T) {
	sites := startSites(t, 1, 1)
	b := sites[1]
	b.stop(t)
	b.kind = func(h *fakeHandler) executor.Handler { return refusingFake{fencedFake{h}} }
	b.start(t)
	job := sites[0].accept(t, `{"command":["sleep"],"sites":{"only":["site-2"]}}`).ID
	const said = "cannot run this task: image evil is not among those that this site allows"
	for _, s := range sites {
		var got string
		s.await(t, func(*fsm.State) bool {
			d, ok := s.cfg.Replica.Feed().LastDecline(job)
			got = d.String()
			return ok
		})
		if want := "site-2 declined it last: " + said; got != want {
			t.Fatalf("%s: %q", s.name, got)
		}
		j, err := s.Job(t.Context(), job)
		if err != nil || j.Reason != "waiting for its turn and a free machine; "+got {
			t.Errorf("%s: %q %v", s.name, j.Reason, err)
		}
		w, err := s.Why(t.Context(), job)
		if err != nil || !strings.HasSuffix(w.Summary, "; "+got) {
			t.Errorf("%s: %q %v", s.name, w.Summary, err)
		}
		if x := w.Sites[1]; x.Why != fsm.HinderedDeclined || x.Text != "declined it: "+said+"; it is asked again after its next offer" {
			t.Errorf("%s: %s %q", s.name, x.Why, x.Text)
		}
	}
}
