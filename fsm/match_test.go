package fsm

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// TestDrawIsWeighted: the keyed choice draws machines in proportion to their free milli-cores, and not always the
// same one for lack of mixing.
func TestDrawIsWeighted(t *testing.T) {
	p := params()
	p.FixedOrder = false
	w := newWorld(t, p, "a", "b", "c")
	w.must("a", w.offering("a", 1, 2))
	w.must("b", w.offering("b"))
	w.must("c", w.offering("c", 3, 4))
	const draws = 20_000
	got := map[string]int{}
	for range draws {
		m := w.s.draw(&w.s.supply, 0)
		got[m.site.name+m.name]++
		w.s.decisions++
	}
	for name, cores := range map[string]int{"am0": 1, "am1": 2, "cm0": 3, "cm1": 4} {
		want := draws * cores / 10
		if d := got[name] - want; d < -want/10 || d > want/10 {
			t.Errorf("%s was drawn %d times, want about %d", name, got[name], want)
		}
	}
}

// TestRoundRobin: sites take turns within one entry, whatever they used.
func TestRoundRobin(t *testing.T) {
	p := params()
	p.Policy = sched.RoundRobin
	w := newWorld(t, p, "a", "b", "c", "m")
	for _, x := range []string{"b", "a", "c"} {
		w.submit(x, w.job(x, 3))
	}
	w.must("m", w.offering("m", 1, 1, 1, 1, 1, 1))
	var got []string
	for _, m := range w.s.byName["m"].machines {
		for _, a := range w.s.Assignments("m") {
			if a.Machine == m.name {
				got = append(got, fmt.Sprintf("%s/%d", a.Job.Site, a.Task))
			}
		}
	}
	if fmt.Sprint(got) != "[b/0 a/0 c/0 b/1 a/1 c/1]" {
		t.Fatalf("%v", got)
	}
}

// TestFairShareByShare: a site that contributes twice as much may use twice as much, and one that contributes
// nothing goes last.
func TestFairShareByShare(t *testing.T) {
	p := params()
	p.Policy = sched.FairShare
	w := newWorld(t, p, "big", "free", "small", "z")
	for _, x := range []string{"free", "big", "small"} {
		w.submit(x, w.job(x, 1000))
	}
	none := func(site string, cores int64) {
		o := w.offering(site, cores)
		o.Machines[0].Runs = command.RunsImages // it lends, but nothing that these jobs can use
		w.must(site, o)
	}
	none("big", 20)
	none("small", 10)
	w.must("z", w.offering("z", 1))
	ran := map[string]int{}
	for range 300 {
		a := w.s.Assignments("z")[0]
		ran[a.Job.Site]++
		w.base += 10
		w.must("z", &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 10)}})
	}
	if ran["free"] != 0 || ran["big"] < 198 || ran["big"] > 202 {
		t.Fatalf("%v, want big and small as 2 to 1", ran)
	}
}

// TestOwnMachineBreaksTies: among equal ranks the machine's owner goes first, although the other waits longer.
func TestOwnMachineBreaksTies(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.submit("b", w.job("b", 1))
	w.submit("a", w.job("a", 1))
	w.must("a", w.offering("a", 1))
	if as := w.s.Assignments("a"); len(as) != 1 || as[0].Job.Site != "a" {
		t.Fatalf("%+v", as)
	}
	w.must("a", w.offering("a", 1, 1))
	if as := w.s.Assignments("a"); len(as) != 2 || as[1].Job.Site != "b" {
		t.Fatalf("%+v", as)
	}
}

// TestDecliningManyDoesNotBlockTheNext: a site that declined very many tasks still gets those that it has not
// declined.
func TestDecliningManyDoesNotBlockTheNext(t *testing.T) {
	const n = 512
	w := newWorld(t, params(), "a", "b")
	for range 3 * n {
		w.submit("b", w.job("b", 1))
	}
	w.must("a", w.offering("a", n))
	for round := 1; round <= 2; round++ {
		as := w.s.Assignments("a")
		if len(as) != n || as[0].Job.Num != uint64((round-1)*n+1) {
			t.Fatalf("round %d: %d assigned, the first is %v", round, len(as), as[0].Job)
		}
		var c command.Decline
		for _, a := range as {
			c.Attempts = append(c.Attempts, a.AttemptRef)
		}
		w.must("a", &c)
	}
	if as := w.s.Assignments("a"); len(as) != n || as[0].Job.Num != 2*n+1 || as[0].Attempt != 1 {
		t.Fatalf("%d assigned, the first is %v attempt %d", len(as), as[0].Job, as[0].Attempt)
	}
	w.check()
}
