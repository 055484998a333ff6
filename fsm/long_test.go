package fsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestPartsGiveWhatOneEntryGives plays one command an entry on two states: one does all of it in that entry, the
// other a little in each of several entries. When nothing is left both have assigned, ended and returned the same,
// by the same ranks, draws and times.
func TestPartsGiveWhatOneEntryGives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, realBounds())
		m.lone = true
		b := realBounds()
		b.steps = rapid.SampledFrom([]uint64{1, 100, 300, 2000}).Draw(rt, "steps")
		p := &parted{t: rt, one: m.w.s, parts: newState(b)}
		for _, c := range m.entries {
			p.apply(c)
		}
		m.alone, m.sent = true, p.apply
		rt.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { m.t, m.w.t, p.t = t, t, t }, "submit": m.submit, "submit2": m.submit, "offer": m.offer, "offer2": m.offer,
			"started": m.started, "bound": m.bound, "complete": m.complete, "decline": m.decline, "cancel": m.cancel, "lost": m.lost,
			"register": m.register, "forget": m.forget, "leave": m.leave, "suspect": m.suspect, "params": m.params, "tick": m.tick,
		})
	})
}

// parted is a state that does little in an entry, next to one that does everything.
type parted struct {
	t          *rapid.T
	one, parts *State
}

// apply gives the parted state an entry that the other one is about to get, and then empty ones; compare compares
// both.
func (p *parted) apply(b *command.Batch) (compare func()) {
	cmds := make([]command.Command, len(b.Commands))
	for i, c := range b.Commands {
		cmds[i] = c
		cmds[i].Body = p.renumbered(c.Body)
	}
	if _, err := p.parts.Apply(&command.Batch{Term: b.Term, Elapsed: b.Elapsed, Commands: cmds}); err != nil {
		p.t.Fatal(err)
	}
	for p.parts.unfinished() {
		if err := p.parts.check(); err != nil {
			p.t.Fatal(err)
		}
		if _, err := p.parts.Apply(&command.Batch{Term: b.Term, Elapsed: b.Elapsed}); err != nil {
			p.t.Fatal(err)
		}
	}
	return func() { p.compare(b) }
}

func (p *parted) compare(b *command.Batch) {
	for p.parts.Pending() || p.one.Pending() { // jobs that are to leave do so by the entry
		for _, s := range []*State{p.parts, p.one} {
			s.retain()
		}
	}
	if one, parts := p.one.outcome(), p.parts.outcome(); one != parts {
		p.t.Fatalf("after %+v\nin one entry:\n%s\nin parts:\n%s", b.Commands, one, parts)
	}
}

// renumbered makes reports name the parted state's attempts, which have different tokens.
func (p *parted) renumbered(b command.Body) command.Body {
	ref := func(r command.AttemptRef) command.AttemptRef {
		slot, ok := p.one.findAny(r)
		if !ok || p.one.attempts.Get(slot).token != r.Token {
			return r
		}
		if slot, ok = p.parts.findAny(r); ok {
			r.Token = p.parts.attempts.Get(slot).token
		}
		return r
	}
	refs := func(in []command.AttemptRef) []command.AttemptRef {
		out := slices.Clone(in)
		for i := range out {
			out[i] = ref(out[i])
		}
		return out
	}
	switch c := b.(type) {
	case *command.Register:
		d := *c
		d.Held, d.Lost = refs(c.Held), refs(c.Lost)
		return &d
	case *command.Decline:
		d := *c
		d.Attempts = refs(c.Attempts)
		return &d
	case *command.Started:
		d := &command.Started{Attempts: slices.Clone(c.Attempts)}
		for i := range d.Attempts {
			d.Attempts[i].AttemptRef = ref(d.Attempts[i].AttemptRef)
		}
		return d
	case *command.Bound:
		d := &command.Bound{Attempts: slices.Clone(c.Attempts)}
		for i := range d.Attempts {
			d.Attempts[i].AttemptRef = ref(d.Attempts[i].AttemptRef)
		}
		return d
	case *command.Complete:
		d := &command.Complete{Attempts: slices.Clone(c.Attempts)}
		for i := range d.Attempts {
			d.Attempts[i].AttemptRef = ref(d.Attempts[i].AttemptRef)
		}
		return d
	}
	return b
}

// findAny finds an attempt that is live or left over, whatever its token.
func (s *State) findAny(r command.AttemptRef) (uint64, bool) {
	slot, ok := s.live[taskKey{s.findJob(r.Job), r.Task}]
	if ok && s.attempts.Get(slot).attempt == r.Attempt {
		return slot, true
	}
	x := s.byName[r.Job.Site]
	if x == nil {
		return 0, false
	}
	slot, ok = s.leftovers[leftKey{x.id, r.Job.Num, r.Task, r.Attempt}]
	return slot, ok
}

// outcome returns everything that does not depend on the numbers of entries.
func (s *State) outcome() string {
	var out strings.Builder
	fmt.Fprintf(&out, "time %d, %d decisions, %d wait, dying %d, version %d\n%s", s.time, s.decisions, s.waiting, s.due.Len(), s.version, s.lives())
	for seq, j := range s.jobs.All() {
		fmt.Fprintf(&out, "job %d %v", seq, s.counts(j))
		if j.tasks != nil {
			fmt.Fprintf(
				&out, " back %v runs %v bars %v why %q records %d", values(j.tasks.back()),
				values(&j.tasks.runs), j.tasks.bars(), j.tasks.why, j.tasks.records.Len(),
			)
		}
		fmt.Fprintln(&out)
	}
	for _, x := range s.order {
		fmt.Fprintf(&out, "%s %v gone %v, %+v\n", x.name, x.state, x.gone, x.account)
		for _, m := range x.machines {
			fmt.Fprintf(&out, "  %s used %v rests %v held %d\n", m.name, m.used, m.resting, m.held)
		}
	}
	return out.String()
}

// TestDepartureInTheMiddleOfAMatch makes a change of parameters end a departure at once while the match of that
// entry is left to the next one.
func TestDepartureInTheMiddleOfAMatch(t *testing.T) {
	p := params()
	p.DepartureMs = 1 << 30
	w := newWorld(t, p, "a", "b")
	w.must("b", w.offering("b", 2, 2, 2))
	w.must("b", &command.Submit{Jobs: []command.JobSpec{w.job("b", 6)}})
	w.must("b", &command.Submit{Jobs: []command.JobSpec{w.job("b", 60)}})
	w.must("a", &command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: 1})
	w.at(9000)
	w.must("a", w.offering("a", 1, 1, 1, 1))
	w.s.bounds.steps = 1
	p.DepartureMs = 5000
	wide := w.job("a", 1)
	wide.Need.MilliCPU = 1500
	cmds := []command.Command{
		w.cmd("a", &command.Submit{Jobs: []command.JobSpec{wide}}), w.cmd("a", &command.SetParams{Params: p}),
	}
	for i := 0; i == 0 || w.s.Pending(); i++ {
		if _, err := w.s.Apply(&command.Batch{Term: 1, Elapsed: w.base, Commands: cmds}); err != nil {
			t.Fatal(err)
		}
		cmds = nil
		w.check()
		if _, err := reborn(w.s); err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
}

// TestSearchEndsWithItsEpoch begins a new epoch during a search for reservations: none is made while the epoch
// holds.
func TestSearchEndsWithItsEpoch(t *testing.T) {
	p := params()
	p.ReserveAfterMs = 1
	w := newWorld(t, p, "a")
	w.must("a", w.offering("a", 2, 2, 2, 2))
	w.must("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 8)}})
	for width := range int64(2) {
		wide := w.job("a", 1)
		wide.Need.MilliCPU = 1500 + width*500
		w.must("a", &command.Submit{Jobs: []command.JobSpec{wide}})
	}
	w.s.bounds.steps = 1
	w.at(5000)
	apply := func(cmds ...command.Command) {
		t.Helper()
		if _, err := w.s.Apply(&command.Batch{Term: 1, Elapsed: w.base, Commands: cmds}); err != nil {
			t.Fatal(err)
		}
		w.check()
	}
	for apply(); w.s.search == nil; {
		apply()
	}
	if w.s.reservations.Len() > 0 {
		t.Fatal("the search is over")
	}
	apply(
		command.Command{ID: command.ID{Site: "a"}, Body: &command.Recover{Epoch: 1, HoldMs: 60_000}},
		w.cmd("a", w.offering("a", 2, 2, 2, 2)),
	)
	for w.s.unfinished() {
		apply()
	}
	if n := w.s.reservations.Len(); n > 0 || !w.s.holds() {
		t.Fatalf("%d reservations while the epoch holds", n)
	}
}

// TestWhoLeavesWithNothingIsNoWork makes a site leave permanently that has nothing waiting: other sites' jobs are
// not examined.
func TestWhoLeavesWithNothingIsNoWork(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	for range 500 {
		w.must("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}})
	}
	w.must("b", &command.Forget{Site: "b"})
	if n := w.s.Steps().Used; n >= 500 {
		t.Fatalf("it took %d steps", n)
	}
}
