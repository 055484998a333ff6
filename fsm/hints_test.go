package fsm

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// hintCommands returns commands that suspect a site or withdraw the suspicion, in turn.
func (w *world) hintCommands(site string, hints ...bool) (cmds []command.Command) {
	for _, on := range hints {
		cmds = append(cmds, w.cmd("a", &command.Suspect{Site: site, Incarnation: w.inc[site], On: on}))
	}
	return cmds
}

// one gives a state one entry with at most that many steps.
func (w *world) one(s *State, steps uint64, cmds ...command.Command) {
	w.t.Helper()
	s.bounds.steps = steps
	results, err := s.Apply(&command.Batch{Term: w.term, Elapsed: w.base, Commands: cmds})
	if err != nil {
		w.t.Fatal(err)
	}
	for i, r := range results {
		if r.Code != command.OK {
			w.t.Fatalf("%+v: %v", cmds[i].Body, r.Code)
		}
	}
	if err := s.check(); err != nil {
		w.t.Fatal(err)
	}
}

// TestTogglesLeaveTwoChores makes a site suspected and heard again a thousand times in one entry, behind work that
// is left. Once a thousand chores remained, each of which sorted everything that the site runs, and nothing was
// matched meanwhile.
func TestTogglesLeaveTwoChores(t *testing.T) {
	for _, last := range []bool{false, true} {
		for _, begun := range []bool{false, true} {
			w := newWorld(t, params(), "a", "b", "c")
			w.must("b", w.offering("b", 4))
			w.must("c", w.offering("c", 4))
			w.submitImmediate("a", 8)
			first := "c"
			if begun {
				first = "b"
			}
			w.one(w.s, 1, w.hintCommands(first, true)...)
			hints := make([]bool, 1000)
			for i := range hints {
				hints[i] = (i%2 == 0) != begun
			}
			if last != hints[len(hints)-1] {
				hints = append(hints, last)
			}
			w.one(w.s, 1, w.hintCommands("b", hints...)...)
			if n := len(w.s.chores); n > 2 {
				t.Errorf("begun %v, at last %v: %d chores are left", begun, last, n)
			}
			w.reborn()
			w.one(w.s, maxSteps)
			want := [...]SiteState{Alive, Suspected}
			open := 0
			for _, a := range w.s.leftovers {
				if w.s.attempts.Get(a).site == w.s.byName["b"].id {
					open++
				}
			}
			if x := w.s.byName["b"]; x.state != want[btoi(last)] || open != 4*btoi(last) {
				t.Errorf("begun %v, at last %v: b is %v, %d in doubt", begun, last, x.state, open)
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestHintsThatCancelOutAreAsIfDone gives one state a hint and its opposite, which cancel out, and makes another
// state do both: the results are equal.
func TestHintsThatCancelOutAreAsIfDone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := params()
		p.Policy = rapid.SampledFrom([]string{sched.SimplDirect, sched.RoundRobin, sched.Alone}).Draw(rt, "policy")
		w := newWaiting(rt, p.Policy, 0, "a", "b", "c")
		w.must("b", w.offering("b", 3, 2))
		w.must("c", w.offering("c", 3))
		for i := range rapid.IntRange(1, 5).Draw(rt, "jobs") {
			least := uint32(1)
			if i == 0 {
				least = 8 // b and c have something to do, whatever else is drawn
			}
			j := w.job("a", rapid.Uint32Range(least, least+3).Draw(rt, "count"))
			j.OnLoss = rapid.SampledFrom([]command.OnLoss{
				command.Immediate, command.Immediate, command.Fenced,
			}).Draw(rt, "onLoss")
			w.submit("a", j)
		}
		w.at(rapid.Int64Range(0, 5000).Draw(rt, "ms"))
		for _, x := range []string{"b", "c"} {
			w.reportSome(rt, x)
		}
		pair, kinds := []bool{true, false}, []choreKind{choreDoubt, choreTrust}
		front := "c"
		if rapid.Bool().Draw(rt, "begun") {
			pair, kinds, front = []bool{false, true}, []choreKind{choreTrust, choreDoubt}, "b"
		}
		w.one(w.s, 1, w.hintCommands(front, true)...)
		n := len(w.s.chores)
		if n == 0 {
			rt.Fatal("nothing is left of the chore before")
		}
		w.one(w.s, 1, w.hintCommands("b", pair...)...)
		if len(w.s.chores) > n {
			rt.Fatalf("%+v are left of %d chores", w.s.chores, n)
		}
		both, err := reborn(w.s)
		if err != nil {
			rt.Fatal(err)
		}
		for _, k := range kinds {
			both.chores = append(both.chores, chore{kind: k, site: both.byName["b"].id, limit: both.nextSeq})
		}
		w.one(w.s, maxSteps)
		w.one(both, maxSteps)
		if w.s.Hash() != both.Hash() {
			rt.Fatalf("cancelled out:\n%s\nboth done:\n%s", w.s.outcome(), both.outcome())
		}
	})
}

// reportSome makes a site report something about some of what it runs, and ask for nothing. At least three
// attempts continue.
func (w *world) reportSome(rt *rapid.T, site string) {
	for i, a := range w.s.Assignments(site) {
		words := 4
		if i < 3 {
			words = 1
		}
		switch rapid.IntRange(0, words).Draw(rt, "word") {
		case 0:
			w.must(site, &command.Started{Attempts: []command.StartedAttempt{{AttemptRef: a.AttemptRef, DelayMs: 20}}})
		case 1:
			w.must(site, &command.Bound{Attempts: []command.BoundAttempt{{AttemptRef: a.AttemptRef, BoundMs: 50_000}}})
		case 2:
			w.must(site, &command.Decline{Attempts: []command.AttemptRef{a.AttemptRef}, Reason: "busy"})
		}
	}
}
