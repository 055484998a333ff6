package fsm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// narrowTraffic is a world in which b's 8 cores are kept busy by an owner's tasks of 2 cores, while a task
// of c needs all 8. step lets 2 s pass: the oldest narrow task ends, and one more is submitted; it reports
// whether the wide task runs.
func narrowTraffic(t *testing.T, w *world, owner string) (step func() bool) {
	t.Helper()
	narrow := func() command.JobSpec {
		j := w.job(owner, 1)
		j.Need.MilliCPU, j.Only = 2000, []string{"b"}
		return j
	}
	w.submit(owner, narrow(), narrow(), narrow(), narrow(), narrow())
	w.must("b", w.offering("b", 8))
	wide := w.job("c", 1)
	wide.Need.MilliCPU = 8000
	w.submit("c", wide)
	now := w.s.time
	return func() bool {
		now += 2000
		w.at(now)
		cmds := []command.Command{w.cmd(owner, &command.Submit{Jobs: []command.JobSpec{narrow()}})}
		for i, a := range w.s.Assignments("b") { // by job
			if a.Need.MilliCPU == 8000 {
				return true
			}
			if i == 0 {
				cmds = append(cmds, w.cmd("b", &command.Complete{Attempts: []command.Ended{ended(
					a, command.Succeeded, 8000,
				)}}))
			}
		}
		w.apply(cmds...)
		return false
	}
}

// runsWithin steps until the wide task runs.
func runsWithin(t *testing.T, w *world, steps int, step func() bool) {
	t.Helper()
	for range steps {
		if step() {
			w.check()
			return
		}
	}
	t.Fatalf("the wide task still waits; held: %v", values(&w.s.reservations))
}

// TestNoHoldOnWhatOwnUsersKeep: a machine of 8 cores, 7 of them taken by its own site's users, has the least in use
// by the federation, and no reservation frees it. The wide task once got it reserved, starved for 11 h of log time,
// and the eighth core idled.
func TestNoHoldOnWhatOwnUsersKeep(t *testing.T) {
	p := params()
	p.ReserveAfterMs = 60_000
	w := newWorld(t, p, "a", "b", "c", "d")
	w.offer["a"]++
	w.must("a", &command.Offer{Version: w.offer["a"], Machines: []command.Machine{{
		Name: "m0", Resources: command.Resources{MilliCPU: 1000}, Whole: command.Resources{MilliCPU: 8000},
	}}, Home: command.Resources{MilliCPU: 7000}})
	runsWithin(t, w, 40, narrowTraffic(t, w, "d"))
}

// TestHoldEndsWhenOwnUsersTakeTheRoom: a reservation that its machine can no longer meet ends, and the job gets
// another machine.
func TestHoldEndsWhenOwnUsersTakeTheRoom(t *testing.T) {
	p := params()
	p.ReserveAfterMs = 10_000
	w := newWorld(t, p, "a", "b", "c", "d")
	w.must("a", w.offering("a", 8))
	w.submit("a", w.job("a", 1)) // keeps a's machine from being free
	step := narrowTraffic(t, w, "d")
	for w.s.reservations.Len() == 0 {
		step()
	}
	if at := w.s.reservations.First().machine.site.name; at != "a" {
		t.Fatalf("held at %s, not where least is in use", at)
	}
	w.offer["a"]++
	w.must("a", &command.Offer{Version: w.offer["a"], Machines: []command.Machine{{
		Name: "m0", Resources: command.Resources{MilliCPU: 2000}, Whole: command.Resources{MilliCPU: 8000},
	}}, Home: command.Resources{MilliCPU: 6000}})
	runsWithin(t, w, 40, step)
}

// TestYoungHeadDoesNotSuspendWiderOnes: the first head in the order is always young, since its site's
// narrow tasks come and go. A task that needs more than it is late because of its size, and gets a machine;
// one that needs no more is late because of the policy, and gets none.
func TestYoungHeadDoesNotSuspendWiderOnes(t *testing.T) {
	p := params()
	p.ReserveAfterMs = 60_000
	w := newWorld(t, p, "b", "c", "e")
	w.must("b", w.offering("b", 8))
	w.submit("c", w.job("c", 1))
	w.at(1000)
	// b has given, c has taken
	w.must("b", &command.Complete{Attempts: []command.Ended{
		ended(w.s.Assignments("b")[0], command.Succeeded, 1000),
	}})
	step := narrowTraffic(t, w, "b")
	late := w.job("e", 1)
	late.Need.MilliCPU = 2000
	w.submit("e", late)
	runsWithin(t, w, 60, step)
	if v, _ := w.s.Job(command.JobID{Site: "e", Num: late.Num}); v.State != Queued {
		t.Errorf("the narrow task of lower standing is %v", v.State)
	}
}

// TestWhatNoMachineCanTakeKeepsNobodyWaiting: seventeen wide tasks would fit a machine whose own users have
// most of it, so nothing is reserved for them now. They are more than one search makes; the next task still
// gets its machine.
func TestWhatNoMachineCanTakeKeepsNobodyWaiting(t *testing.T) {
	p := params()
	p.ReserveAfterMs = 1000
	w := newWorld(t, p, "a", "b", "c")
	w.offer["b"]++
	w.must("b", &command.Offer{Version: w.offer["b"], Machines: []command.Machine{{
		Name: "m0", Resources: command.Resources{MilliCPU: 1000}, Whole: command.Resources{MilliCPU: 100_000},
	}}, Home: command.Resources{MilliCPU: 99_000}})
	w.must("c", w.offering("c", 8))
	w.submit("a", w.job("a", 9)) // all is in use
	for i := range reserveAtOnce + 1 {
		j := w.job("a", 1)
		j.Need.MilliCPU = 60_000 + int64(i)
		w.submit("a", j)
	}
	j := w.job("a", 1)
	j.Need.MilliCPU = 8000
	w.submit("a", j)
	w.at(5000)
	w.apply()
	if w.s.reservations.Len() != 1 || w.s.reservations.First().machine.site.name != "c" {
		t.Errorf("held: %v", values(&w.s.reservations))
	}
	w.check()
}

// TestHoldsAreMadeInParts has many sites wait for machines with many requirements, none of which is within
// another. Comparing them all at once was an entry of 2.8 s for 1000 sites with 100 each, whatever its
// bound. In parts, some of them on a restored replica, the same machines are reserved as in one entry.
func TestHoldsAreMadeInParts(t *testing.T) {
	const sites, lanes, bound = 30, 10, 500
	p := params()
	p.ReserveAfterMs = 10_000
	w := newWorld(t, p, "host")
	o := &command.Offer{Version: 1}
	for i := range 3 * reserveAtOnce {
		o.Machines = append(o.Machines, command.Machine{
			Name: fmt.Sprintf("m%02d", i), Resources: command.Resources{MilliCPU: 10_000, MemMiB: 100_000},
		})
	}
	w.must("host", o)
	w.submit("host", w.job("host", uint32(10*len(o.Machines)))) // nothing is free
	wait := func(x string, i, k int) {
		j := w.job(x, 1)
		u := int64(i*lanes + k)
		j.Need = command.Resources{MilliCPU: 2000 + u, MemMiB: 90_000 - u}
		w.submit(x, j)
	}
	for i := range sites {
		x := fmt.Sprintf("s%03d", i)
		w.register(x)
		for k := range lanes / 2 {
			wait(x, i, 2*k)
		}
	}
	w.at(9000)
	w.apply()
	for i := range sites {
		for k := range lanes / 2 {
			wait(fmt.Sprintf("s%03d", i), i, 2*k+1)
		}
	}
	w.s.nextReserve = 0
	w.at(11_000)
	whole, err := reborn(w.s)
	if err != nil {
		t.Fatal(err)
	}
	w.one(whole, maxSteps)
	w.one(w.s, bound)
	for n := 1; w.s.unfinished(); n++ {
		twin, err := reborn(w.s)
		if err != nil {
			t.Fatal(err)
		}
		w.one(w.s, bound)
		w.one(twin, bound)
		if used := w.s.Steps().Used; twin.Steps().Used != used || twin.Hash() != w.s.Hash() {
			t.Fatalf("%d steps, restored %d", used, twin.Steps().Used)
		} else if used > 2*bound {
			t.Errorf("%d steps in one entry", used)
		}
		if n%7 == 0 {
			w.s = twin
		}
	}
	held := func(s *State) (out []string) {
		for r := range s.reservations.All() {
			out = append(out, fmt.Sprint(r.seq, " at ", r.machine.name))
		}
		return out
	}
	if got, want := held(w.s), held(whole); len(want) != reserveAtOnce || !slices.Equal(got, want) {
		t.Errorf("held in parts: %v\nin one entry: %v", got, want)
	}
}
