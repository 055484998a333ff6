package sim

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/sched"
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
		in.Obey(Rules{})
		want, err := Play(&in.Case)
		if err != nil {
			t.Fatal(err)
		}
		var states []*fsm.State
		for range in.Cores {
			states = append(states, fsm.New())
		}
		got, err := play(t.Context(), &in.Case, states...)
		if err != nil || got.Hash != want.Hash || !slices.Equal(got.Start, want.Start) ||
			!slices.Equal(got.Site, want.Site) {
			t.Errorf("scenario %d: another schedule with a replica at every site: %v", scenario, err)
		}
		for i, state := range states {
			if state.Index() != want.Entries || state.Hash() != want.Hash {
				t.Errorf("scenario %d: %s is at entry %d of %d, or has another state", scenario, SiteName(i), state.Index(), want.Entries)
			}
		}
	}
}

// A run ends with its context, however long it would take.
func TestPlayEndsWithItsContext(t *testing.T) {
	w := sample(t)
	s := DefaultSetup()
	in, err := w.Instance(&s, 3600, 0)
	if err != nil {
		t.Fatal(err)
	}
	in.Obey(Rules{})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := PlayContext(ctx, &in.Case); !errors.Is(err, enough) {
		t.Errorf("it ended with %v", err)
	}
}

// A burst larger than a broker takes at once is ordered in parts, and starts no
// task at another second.
func TestBurstsAreOrderedInParts(t *testing.T) {
	c := &Case{Cores: []int64{2, 3}, Params: Params(sched.SimplDirect), Seed: 1}
	for i := range 40 {
		c.Tasks = append(c.Tasks, Task{Release: int64(i / 20), Run: 5, Width: 1, Site: i % 2, Job: int64(i)})
	}
	whole, err := Play(c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlayer(c, fsm.New())
	if err != nil {
		t.Fatal(err)
	}
	p.atOnce = 3
	parts, err := p.run(t.Context())
	if err != nil || !slices.Equal(parts.Start, whole.Start) || parts.Entries <= whole.Entries {
		t.Errorf("in parts tasks start at %v in %d entries, else at %v in %d: %v", parts.Start, parts.Entries, whole.Start, whole.Entries, err)
	}
}

// What a site publishes of one job in a second is one job, after the task that was
// the first to find no room; what starts at home is a job each.
func TestBagsAreOneJob(t *testing.T) {
	c := &Case{Cores: []int64{2, 3}, Params: Params(sched.SimplDirect), Seed: 1}
	for i := range int32(20) {
		c.Tasks = append(c.Tasks, Task{Run: 5, Width: 1, Job: 7, Index: i})
	}
	p, err := newPlayer(c, fsm.New())
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.sites[0].jobs[1:], []int32{0, 1, 2, 3}; !slices.Equal(got, want) || out.Home != 2 ||
		out.Decisions != 18 {
		t.Errorf("jobs begin with the tasks %v, want %v; %d tasks ran at home, %d were assigned", got, want, out.Home, out.Decisions)
	}
}

// Log time ends after ten years; work that lasts longer is refused, not waited for.
func TestWorkBeyondLogTimeIsRefused(t *testing.T) {
	c := &Case{Cores: []int64{1}, Params: Params(sched.SimplDirect)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := newPlayer(c, fsm.New())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.advance(ctx, sched.MaxNow/1000+1); !errors.Is(err, ErrBadCase) {
		t.Errorf("beyond log time: %v", err)
	}
	if err := p.advance(ctx, maxSecond); !errors.Is(err, context.Canceled) {
		t.Errorf("a pause of years goes on after its context: %v", err)
	}
}
