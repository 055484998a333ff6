package fsm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// newWaiting is a world under a policy of projected waits in which each site has that many cores.
func newWaiting(t tb, policy string, cores int64, sites ...string) *world {
	w := newWorld(t, params(), sites...)
	for _, x := range sites {
		w.must(x, w.offering(x, cores))
	}
	w.use(sites[0], policy)
	return w
}

func (w *world) use(site, policy string) {
	w.t.Helper()
	p := w.s.params
	p.Policy = policy
	w.must(site, &command.SetParams{Params: p})
}

// TestPolicyHasItsLimit: SHAPLEY is refused above twelve sites, with the limit and what to choose instead; when the
// thirteenth joins later, CE takes over.
func TestPolicyHasItsLimit(t *testing.T) {
	names := make([]string, sched.MaxShapley)
	for i := range names {
		names[i] = fmt.Sprintf("s%02d", i)
	}
	w := newWaiting(t, sched.Shapley, 1, names...)
	w.submit("s00", w.job("s00", 30))
	if w.s.Policy() != sched.Shapley {
		t.Fatal(w.s.Policy())
	}
	w.register("late")
	w.must("late", w.offering("late", 1))
	w.submit("late", w.job("late", 3))
	if w.s.Policy() != sched.CE || w.s.params.Policy != sched.Shapley {
		t.Fatalf("%s counts, %s is set", w.s.Policy(), w.s.params.Policy)
	}
	if v, _ := w.s.Why(command.JobID{Site: "late", Num: 1}); v.Policy != sched.CE {
		t.Errorf("why goes by %s", v.Policy)
	}
	w.check()
	if _, err := reborn(w.s); err != nil {
		t.Fatal(err)
	}
	w.use("s00", sched.Alone)
	if err := w.s.CanUse(sched.Shapley); !errors.Is(err, ErrPolicySites) || !strings.Contains(err.Error(), "at most 12 sites, 13 have registered: choose CE") {
		t.Error(err)
	}
	p := w.s.params
	p.Policy = sched.Shapley
	if r := w.do("s00", &command.SetParams{Params: p}); r.Code != command.PolicySites ||
		!strings.Contains(r.Code.String(), "CE") {
		t.Errorf("SHAPLEY with 13 sites: %v", r.Code)
	}
}

// TestWhoLostMostByTheFederationGoesFirst: a has flooded the queue; b, alone, would not have to wait, so
// its task is next under each of the three policies.
func TestWhoLostMostByTheFederationGoesFirst(t *testing.T) {
	for _, policy := range sched.Projected() {
		w := newWaiting(t, policy, 1, "a", "b")
		w.submit("a", w.job("a", 6))
		w.at(1000)
		w.submit("b", w.job("b", 1))
		v, ok := w.s.Why(command.JobID{Site: "a", Num: 1})
		if !ok || v.Turns[0].Site != "b" || v.Turns[0].Excess[0] == '-' || v.Turns[1].Excess[0] != '-' {
			t.Fatalf("%s: %+v", policy, v.Turns)
		}
		w.at(3_600_000 / 2) // before its estimate
		w.must("a", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("a")[0], command.Succeeded, 60_000)}})
		if got := w.s.Assignments("a")[0].Job.Site; got != "b" {
			t.Errorf("%s: %s is next", policy, got)
		}
		w.check()
	}
}

// TestAwayDoesNotWait: what a site waits while it is away does not count; it returns with what it had
// waited before.
func TestAwayDoesNotWait(t *testing.T) {
	w := newWaiting(t, sched.Alone, 0, "a", "b")
	w.submit("a", w.job("a", 4))
	w.at(5000)
	w.apply(w.cmd("b", &command.SiteLost{Site: "a", Incarnation: w.inc["a"], Term: w.term}))
	a := w.s.byName["a"]
	for ms := int64(10_000); ms < 1_000_000; ms += 50_000 {
		w.at(ms)
		w.apply()
	}
	if got := a.account.Projection.Started; got != sched.Int64(4*5000) || w.s.waits.all.Units != 0 {
		t.Errorf("waited %v while it was away, 4·5000 before", got)
	}
	w.check()
	w.register("a")
	w.base += 1000
	w.apply()
	if got := a.account.Projection.At(w.s.quanta(w.s.time)); got != sched.Int64(4*6000) {
		t.Errorf("waited %v after a second at home again", got)
	}
	w.check()
}

// TestNewcomerBeginsEqual: a site that joins a federation with a policy of projected waits has waited
// nothing, and its fair share is nothing.
func TestNewcomerBeginsEqual(t *testing.T) {
	for _, policy := range sched.Projected() {
		w := newWaiting(t, policy, 2, "a", "b")
		w.submit("a", w.job("a", 40))
		w.at(60_000)
		w.register("c")
		account := w.s.accounts()(w.s.byName["c"])
		if p := account.Projection; !p.Fair.IsZero() || !p.At(60_000).IsZero() {
			t.Errorf("%s: %+v", policy, p)
		}
		w.check()
	}
}

// TestEstimates: a declared timeout is the estimate; without one it is the mean of what the owner's tasks
// ran, together with one hour.
func TestEstimates(t *testing.T) {
	w := newWaiting(t, sched.Alone, 1, "a")
	x := w.s.byName["a"]
	if got := w.s.lengthOf(x, 0); got != 3_600_000 {
		t.Errorf("before anything ran: %d", got)
	}
	w.submit("a", w.job("a", 3))
	for i := range 3 {
		w.at(int64(i+1) * 1000)
		w.must("a", &command.Complete{Attempts: []command.Ended{ended(w.s.Assignments("a")[0], command.Succeeded, 1000)}})
	}
	if got, want := w.s.lengthOf(x, 0), int64((3_600_000+3*1000)/4); got != want {
		t.Errorf("after three of a second: %d, want %d", got, want)
	}
	for _, ms := range []int64{1, 5000, command.MaxTimeoutMs} {
		if got := w.s.lengthOf(x, ms); got != ms {
			t.Errorf("timeout %d: %d", ms, got)
		}
	}
	w.check()
}

// TestWhatASiteSaysOfItselfChangesNothing: under the policies of projected waits only what a site lends
// counts. A site that claims that its own users use many cores, and that home runs waited long, has the
// same turn as without.
func TestWhatASiteSaysOfItselfChangesNothing(t *testing.T) {
	for _, policy := range sched.Projected() {
		var fair [2]sched.Projection
		for lies := range 2 {
			w := newWaiting(t, policy, 1, "a", "b", "c")
			w.at(50_000)
			if lies == 1 {
				o := w.offering("a", 1)
				o.Home.MilliCPU, o.Capacity.MilliCPU = 90_000, 91_000
				w.must("a", o)
				w.must("a", &command.Usage{
					Batch: 1,
					Rows: []command.UsageRow{{
						Job: 1, Need: command.Resources{MilliCPU: 1000}, RunMs: 1000, WaitMs: 40_000,
					}},
				})
			}
			w.submit("a", w.job("a", 9))
			w.submit("b", w.job("b", 9))
			w.at(60_000)
			w.apply()
			fair[lies] = w.s.accounts()(w.s.byName["a"]).Projection
			w.check()
		}
		if fair[0] != fair[1] {
			t.Errorf("%s: honest %+v, lying %+v", policy, fair[0], fair[1])
		}
	}
}

// TestWhoNeverLends: a site that lends nothing is treated as if it had one core. It is behind sites that
// wait equally and lend more, and joining gives it nothing of the others' share; but what it waits counts,
// so its turn comes, although the others always have more than all machines can run.
func TestWhoNeverLends(t *testing.T) {
	for _, policy := range sched.Projected() {
		w := newWaiting(t, policy, 2, "a", "b")
		work := func(site string, n uint32) {
			j := w.job(site, n)
			j.TimeoutMs = 60_000
			w.submit(site, j)
		}
		work("a", 102)
		work("b", 102)
		w.at(1000)
		w.register("user")
		if p := w.s.accounts()(w.s.byName["user"]).Projection; !p.Fair.IsZero() {
			t.Errorf("%s: it joined, and its fair share is %v", policy, p.Fair)
		}
		work("user", 100)
		v, _ := w.s.Why(command.JobID{Site: "user", Num: 1})
		if last := v.Turns[len(v.Turns)-1]; last.Site != "user" || last.Endless {
			t.Errorf("%s: %+v", policy, v.Turns)
		}
		minute := int64(1)
		for ; w.running("user") == 0; minute++ {
			if minute > 100 {
				t.Fatalf("%s: it starves: %+v", policy, v.Turns)
			}
			w.at(minute * 60_000)
			for _, x := range []string{"a", "b"} {
				for _, a := range w.s.Assignments(x) {
					w.must(x, &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 60_000)}})
				}
				work(x, 2)
			}
			v, _ = w.s.Why(command.JobID{Site: "user", Num: 1})
		}
		if minute < 5 {
			t.Errorf("%s: it is served after %d minutes", policy, minute)
		}
		w.check()
	}
}

// running returns how many tasks of a site run.
func (w *world) running(owner string) (n int) {
	for _, x := range w.s.sites {
		for _, a := range w.s.Assignments(x.name) {
			if a.Job.Site == owner {
				n++
			}
		}
	}
	return n
}

// TestRanksCountWhatChoresReturned cuts a match and then loses a site in as many entries as that takes: what that
// returns counts for the ranks of what is matched then. Only what existed after the first of these entries used to
// count.
func TestRanksCountWhatChoresReturned(t *testing.T) {
	w := newWaiting(t, sched.Alone, 0, "a", "b", "c")
	w.must("b", w.offering("b", 8))
	w.submit("a", w.job("a", 20))
	w.one(w.s, 1, w.cmd("c", w.offering("c", 6)))
	if w.s.phase != cut {
		t.Fatal("the match is over")
	}
	w.one(w.s, 1, w.cmd("a", &command.SiteLost{Site: "b", Incarnation: w.inc["b"], Term: w.term}))
	for entries := 0; w.s.matchesLater(); entries++ {
		decisions := w.s.decisions
		w.one(w.s, 1)
		w.reborn()
		if got, want := w.s.waits.queued, w.s.waits.all.Units+int64(w.s.decisions-decisions); got != want {
			t.Fatalf("entry %d: ranks share %d units, %d waited", entries, got, want)
		}
	}
	counted := w.s.waits.queued
	for w.s.phase == cut {
		if w.one(w.s, 1); w.s.phase == cut && w.s.waits.queued != counted {
			t.Fatalf("the match that goes on counts %d units, it began with %d", w.s.waits.queued, counted)
		}
	}
	if counted != 20-1 {
		t.Errorf("%d units were counted, one of 20 runs", counted)
	}
}
