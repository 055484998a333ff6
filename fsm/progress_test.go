package fsm

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestCutMatchGoesOnBesideCommands makes a job wait for the last of ten machines while each entry holds a command
// and does less than one search: a match that began again in each entry would never reach that machine.
func TestCutMatchGoesOnBesideCommands(t *testing.T) {
	for _, fixed := range []bool{true, false} {
		p := params()
		p.FixedOrder = fixed
		w := newWorld(t, p, "a", "b")
		w.must("a", w.offering("a", 1, 1, 1, 1, 1, 1, 1, 1, 1, 4))
		w.s.bounds.steps = 60
		wide := w.job("b", 1)
		wide.Need.MilliCPU = 3000
		cmd := w.cmd("b", &command.Submit{Jobs: []command.JobSpec{wide}})
		for n := 0; w.s.attempts.Len() == 0; n++ {
			if n == 50 {
				t.Fatalf("fixed %v: a machine is free, and the job waits after %d entries", fixed, n)
			}
			b := &command.Batch{Term: 1, Elapsed: w.base, Commands: []command.Command{cmd}}
			if _, err := w.s.Apply(b); err != nil {
				t.Fatal(err)
			}
			w.check()
			if _, err := reborn(w.s); err != nil {
				t.Fatalf("entry %d: %v", n, err)
			}
			cmd = w.cmd("b", &command.Addresses{HTTP: "b:1"})
		}
	}
}

// TestMatchEndsBesideCommands makes one free machine fit a task, and every later entry bring something for other
// machines and tasks, while an entry does little: offers, also under new names, submissions of other sizes, ends,
// declines, suspicions. The task starts.
func TestMatchEndsBesideCommands(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := params()
		p.FixedOrder, p.PreferOwn = rapid.Bool().Draw(rt, "fixed"), rapid.Bool().Draw(rt, "preferOwn")
		w := newWorld(rt, p, "a", "b", "c")
		w.must("c", w.offering("c", 2, 2))
		for range rapid.IntRange(0, 3).Draw(rt, "before") {
			w.bustle(rt)
		}
		w.s.bounds.steps = rapid.Uint64Range(1, 200).Draw(rt, "steps")
		o := w.offering("c", 2, 2)
		o.Machines = append(o.Machines, command.Machine{Name: "z", Resources: command.Resources{MilliCPU: 1000, GPU: 1}})
		rare := w.job("c", 1)
		rare.Need.GPU = 1
		bodies := []command.Body{o, &command.Submit{Jobs: []command.JobSpec{rare}}}
		if rapid.Bool().Draw(rt, "late") {
			slices.Reverse(bodies)
		}
		cmds := []command.Command{w.cmd("c", bodies[0]), w.cmd("c", bodies[1])}
		seq := w.s.nextSeq
		for n := 0; ; n++ {
			if _, err := w.s.Apply(&command.Batch{Term: 1, Elapsed: w.base, Commands: cmds}); err != nil {
				rt.Fatal(err)
			}
			if err := w.s.check(); err != nil {
				rt.Fatal(err)
			}
			if w.s.jobs.Get(seq).waiting() == 0 {
				return
			}
			if n == 2000 {
				rt.Fatalf("the task waits after %d entries", n)
			}
			if rapid.IntRange(0, 9).Draw(rt, "restore") == 0 {
				r, err := reborn(w.s)
				if err != nil {
					rt.Fatal(err)
				}
				w.s = r
			}
			cmds = w.bustling(rt)
		}
	})
}

func (w *world) bustle(t *rapid.T) { w.apply(w.bustling(t)...) }

// bustling returns commands of sites a and b, and of c about others.
func (w *world) bustling(t *rapid.T) (cmds []command.Command) {
	w.base += rapid.Int64Range(0, 50).Draw(t, "ms")
	for range rapid.IntRange(1, 3).Draw(t, "commands") {
		site := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "site")
		switch rapid.IntRange(0, 5).Draw(t, "what") {
		case 0:
			o := w.offering(site)
			named := rapid.SampledFrom([]string{"m", "n", "new"}).Draw(t, "named")
			for i := range rapid.IntRange(1, 6).Draw(t, "machines") {
				if named == "new" {
					named = fmt.Sprintf("x%06d", w.offer[site])
				}
				o.Machines = append(o.Machines, command.Machine{
					Name: fmt.Sprint(named, i), Resources: command.Resources{MilliCPU: 3000},
				})
			}
			cmds = append(cmds, w.cmd(site, o))
		case 1, 2:
			j := w.job(site, rapid.Uint32Range(1, 20).Draw(t, "count"))
			j.Need.MilliCPU = 1100 + rapid.Int64Range(0, 20).Draw(t, "size")*100
			cmds = append(cmds, w.cmd(site, &command.Submit{Jobs: []command.JobSpec{j}}))
		case 3, 4:
			c := &command.Complete{}
			for _, a := range w.s.Assignments(site) {
				c.Attempts = append(c.Attempts, ended(a, command.Succeeded, 1))
			}
			cmds = append(cmds, w.cmd(site, c))
		case 5:
			cmds = append(cmds, w.cmd("c", &command.Suspect{
				Site: site, Incarnation: w.inc[site], On: rapid.Bool().Draw(t, "on"),
			}))
		}
	}
	return cmds
}

// TestHeardAgainWithoutItsMachines makes a site lost, registered, suspected and heard again in one entry of a cut
// match, with tasks on a machine that it no longer offers. When these have ended the machine is dropped, and the
// end of the pass must not reach it.
func TestHeardAgainWithoutItsMachines(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 4))
	w.s.bounds.steps = 1
	apply := func(s *State, cmds ...command.Command) {
		t.Helper()
		if _, err := s.Apply(&command.Batch{Term: 1, Elapsed: w.base, Commands: cmds}); err != nil {
			t.Fatal(err)
		}
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
	}
	for apply(w.s, w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 8)}})); w.s.attempts.Len() < 3; {
		apply(w.s)
	}
	lost, register := w.cmd("a", &command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: 1}), w.registration("b", nil, nil)
	again := w.inc["b"] + 1
	apply(w.s, lost, register,
		w.cmd("a", &command.Suspect{Site: "b", Incarnation: again, On: true}),
		w.cmd("a", &command.Suspect{Site: "b", Incarnation: again}))
	if w.s.phase != cut || len(w.s.chores) == 0 {
		t.Fatalf("phase %d, %d chores: nothing is left", w.s.phase, len(w.s.chores))
	}
	for w.s.Pending() {
		r, err := reborn(w.s)
		if err != nil {
			t.Fatal(err)
		}
		apply(w.s)
		if apply(r); r.Hash() != w.s.Hash() {
			t.Fatalf("entry %d: a restored state goes on in another way", w.s.index)
		}
	}
}
