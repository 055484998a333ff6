package node

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
			d, ok := s.cfg.Replica.feed.lastDecline(job)
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

// What is remembered of declines is bounded, and the latest of it stays.
func TestDeclinesAreBounded(t *testing.T) {
	f := newFeed(0)
	id := func(i int) fsm.JobID { return fsm.JobID{Site: "a", Num: uint64(i + 1)} }
	hand := func(job fsm.JobID, site, reason string) {
		f.add([]fsm.Event{{Index: 1, Kind: fsm.EventTaskRequeued, End: fsm.EndDeclined, Job: job, Site: site, Reason: reason}})
	}
	const all = 3 * maxDeclines
	for i := range all {
		hand(id(i), "b", "full")
		if i%3 == 0 {
			f.add([]fsm.Event{{Index: 1, Kind: fsm.EventJobEnded, Job: id(i)}})
		}
	}
	last := id(all - 1)
	for i := range maxDeclineSites + 2 {
		hand(last, fmt.Sprintf("site-%d", i), "first")
	}
	hand(last, "site-2", "then")
	d := &f.declines
	if len(d.by) > maxDeclines || len(d.order) > 2*maxDeclines {
		t.Errorf("%d jobs, %d in order", len(d.by), len(d.order))
	}
	if _, ok := f.lastDecline(id(0)); ok {
		t.Error("a job that has ended is remembered")
	}
	if _, ok := f.lastDecline(id(all - 2)); !ok {
		t.Error("a late job is forgotten")
	}
	words := f.declined(last)
	if got := fmt.Sprint(words); got != "[site-3 declined it last: first site-4 declined it last: first site-5 declined it last: first site-2 declined it last: then]" {
		t.Error(got)
	}
	if f.reset(9); len(f.declined(last)) != 0 {
		t.Error("a snapshot replaced the state, and its jobs' words stayed")
	}
}

// A site that offers nothing says why, if it knows; others know what its offer says.
func TestClosedSiteSaysWhy(t *testing.T) {
	x := &fsm.SiteWhy{Site: "a", Why: fsm.HinderedClosed}
	for want, h := range map[string]hearsay{
		"offers no machine now, and its broker does not say why":                                {},
		"offers no machine now: it leaves the federation":                                       {closed: map[string]fsm.Closure{"a": fsm.ClosedLeaving}},
		"offers no machine now: none of its machines can start tasks":                           {closed: map[string]fsm.Closure{"a": fsm.ClosedTrouble}, bare: map[string]bool{"a": true}},
		"has no machine now: what runs its tasks is away":                                       {bare: map[string]bool{"a": true}},
		"offers no machine now: its operator drains it":                                         {own: ownTrouble{site: "a", closed: "its operator drains it"}},
		"offers no machine now: container has no machine now: no containers: the engine is off": {own: ownTrouble{site: "a", away: "container has no machine now: no containers: the engine is off"}},
	} {
		if got := h.text(&fsm.WhyView{}, x); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	kind := &fsm.SiteWhy{Site: "a", Why: fsm.HinderedKind}
	h := hearsay{own: ownTrouble{site: "a", away: "container has no machine now: off"}}
	if got := h.text(&fsm.WhyView{}, kind); !strings.HasSuffix(got, "; container has no machine now: off") {
		t.Error(got)
	}
}
