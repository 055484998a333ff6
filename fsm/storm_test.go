package fsm

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Some commands take a few bytes and concern everything that a site has: an entry has room for tens of thousands of
// them. These tests give a state a storm of each.

// TestOffersLookAtNoFormerMachines makes a site repeatedly offer nothing while tasks run on machines that
// it offered before. Each offer used to examine all these: 30,000 offers in an entry, with 10,000 machines,
// took 22 s.
func TestOffersLookAtNoFormerMachines(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 1, 1, 1))
	w.submit("a", w.job("a", 2))
	w.must("b", w.offering("b"))
	x := w.s.byName["b"]
	if len(x.machines) != 0 || len(x.former) != 2 || x.used.MilliCPU != 2000 || x.reach.MilliCPU != 2000 {
		t.Fatalf("%d machines, %d former ones, %v used, %v in reach", len(x.machines), len(x.former), x.used, x.reach)
	}
	w.must("b", w.offering("b", 1)) // one is offered again, with what runs there
	if len(x.machines) != 1 || x.machines[0].tasks != 1 || len(x.former) != 1 {
		t.Fatalf("%d tasks on the machine that is offered again, %d former ones", x.machines[0].tasks, len(x.former))
	}
	w.check()
	w.reborn()
	for _, a := range w.s.Assignments("b") {
		w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 1)}})
	}
	if x = w.s.byName["b"]; len(x.former) != 0 || x.used != (command.Resources{}) {
		t.Fatalf("%d former machines, %v used", len(x.former), x.used)
	}
	w.check()
}

// TestTogglesWakeMachinesOnce makes a site suspected and heard again a thousand times in one entry. Each
// time all its machines used to be woken: 20,000 times 10,000 of them took 3 s.
func TestTogglesWakeMachinesOnce(t *testing.T) {
	const machines, toggles = 200, 1000
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", make([]int64, machines)...))
	hints := make([]bool, 2*toggles)
	for i := range hints {
		hints[i] = i%2 == 0
	}
	w.apply(w.hintCommands("b", hints...)...)
	if used := w.s.Steps().Used; used > machines+10*toggles {
		t.Errorf("%d toggles of %d machines took %d steps", toggles, machines, used)
	}
	w.check()
}

// TestAWokenSiteTakesWhatCame: a site that is suspected and heard again twice in an entry takes what came
// in between.
func TestAWokenSiteTakesWhatCame(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 1))
	big := w.job("a", 1)
	big.Need.MilliCPU = 2000
	w.submit("a", big) // b's machine rests
	cmds := w.hintCommands("b", true, false, true)
	cmds = append(cmds, w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 1)}}))
	w.apply(append(cmds, w.hintCommands("b", false)...)...)
	if n := len(w.s.Assignments("b")); n != 1 {
		t.Errorf("%d tasks at b", n)
	}
	w.check()
}

// TestHintsLookAtFewChores makes a site repeatedly suspected and heard again while the cancels of very many
// jobs are left. Each hint used to search all of them for its opposite: 20,000 among 285,000 took 2 s.
func TestHintsLookAtFewChores(t *testing.T) {
	const jobs, toggles = 2000, 50
	w := newWorld(t, params(), "a", "b")
	w.submitMany("a", jobs)
	var cancels []command.Command
	for i := range jobs {
		cancels = append(cancels, w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: uint64(i + 1)}, Task: -1}))
	}
	w.s.bounds.window = 2 * jobs
	w.one(w.s, 1, cancels...)
	hints := make([]bool, 2*toggles)
	for i := range hints {
		hints[i] = i%2 == 0
	}
	w.one(w.s, 1, w.hintCommands("b", hints...)...)
	if used, most := w.s.Steps().Used, uint64(toggles*(hintLooks+2)+stepEnd+stepLook); len(w.s.chores) < jobs/2 ||
		used > most {
		t.Errorf("%d toggles beside %d chores took %d steps, at most %d were to be", toggles, len(w.s.chores), used, most)
	}
	w.apply()
	if w.s.unfinished() || w.s.byName["b"].state != Alive || w.s.waiting > 0 {
		t.Errorf("b is %v, %d tasks wait", w.s.byName["b"].state, w.s.waiting)
	}
}

// TestCommandsComeBackwards sends a site's commands in reverse order, with a snapshot taken in between.
// Each used to be inserted before all others in a new list: 40,000 in an entry took 1.1 s.
func TestCommandsComeBackwards(t *testing.T) {
	const n = 20
	w := newWorld(t, params(), "a", "b")
	var cmds []command.Command
	for i := range uint64(n) {
		cmds = append(cmds, command.Command{
			ID:   command.ID{Site: "a", Incarnation: 1, Seq: n - i},
			Body: &command.Close{Why: command.Closure(i % 5)},
		})
	}
	w.apply(cmds[:n/2]...)
	f := w.s.Snapshot()
	before, epoch := f.Hash(), w.s.epoch
	w.apply(cmds[n/2:]...)
	if f.Hash() != before {
		t.Error("an insertion changes a snapshot taken before it")
	}
	x := w.s.byName["a"]
	if x.windowEpoch != epoch || len(x.window) != n {
		t.Errorf("%d results, copied in epoch %d of %d", len(x.window), x.windowEpoch, epoch)
	}
	for i := range uint64(n) {
		if r, ok := w.s.Result(command.ID{Site: "a", Incarnation: 1, Seq: i + 1}); !ok || r.Code != command.OK ||
			x.window[i].seq != i+1 {
			t.Errorf("command %d: %+v, %v", i+1, r, ok)
		}
	}
	w.reborn()
}

// TestReservationsEndOneByOne ends reservations in an order of their own. Each end used to walk along all:
// cancelling the jobs of 50,000 in one entry took 8.5 s.
func TestReservationsEndOneByOne(t *testing.T) {
	p := params()
	p.ReserveAfterMs = 1000
	w := newWorld(t, p, "a", "b", "c")
	w.must("b", w.offering("b", 2, 2, 2, 2, 2, 2, 2, 2))
	w.must("c", w.offering("c", 2))
	w.submit("a", w.job("a", 18)) // fills them
	for i := range 4 {
		j := w.job("a", 1)
		j.Need.MilliCPU += int64(i)
		w.submit("a", j)
	}
	w.at(5000)
	w.apply()
	order := func() (nums []uint64) {
		for r := range w.s.reservations.All() {
			nums = append(nums, w.s.jobs.Get(r.seq).num)
		}
		return nums
	}
	if got := order(); !slices.Equal(got, []uint64{2, 3, 4, 5}) {
		t.Fatalf("held for %v", got)
	}
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 4}, Task: -1})
	w.check()
	w.reborn()
	if got := order(); !slices.Equal(got, []uint64{2, 3, 5}) {
		t.Errorf("held for %v", got)
	}
	w.must("b", w.offering("b", 2, 2, 2, 2, 2, 2, 2)) // a machine goes that is not held, or is
	w.check()
	w.must("c", &command.SiteLost{Site: "a", Incarnation: 1, Term: 1})
	if got := order(); len(got) > 0 {
		t.Errorf("held for %v of a site that is away", got)
	}
	w.check()
}

// TestSitesHeedTheLastParameters: parameters that are set several times in an entry are applied to the sites once.
// 20,000 times with 9000 sites took 10 s.
func TestSitesHeedTheLastParameters(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	o := w.offering("b", 2)
	o.Home.MilliCPU = 1000
	w.must("b", o)
	w.must("c", &command.Leave{})
	set := func(claimed bool, departureMs, retainJobs int64) command.Command {
		p := w.s.params
		p.ClaimedHome, p.DepartureMs, p.RetainJobs = claimed, departureMs, retainJobs
		return w.cmd("a", &command.SetParams{Params: p})
	}
	for range 3 {
		w.submit("a", w.job("a", 1))
	}
	for _, a := range w.s.Assignments("b") {
		w.must("b", &command.Complete{Attempts: []command.Ended{ended(a, command.Succeeded, 1)}})
	}
	w.apply(set(true, 1000, 1), set(false, 0, 9), set(true, 5000, 2))
	w.check()
	if x := w.s.byName["b"]; x.account.Share != 3000 || w.s.parkedUntil != 5000 || w.s.byName["a"].ended.Len() != 2 {
		t.Errorf("b's share is %d, the next departure %d, %d jobs are kept", x.account.Share, w.s.parkedUntil, w.s.byName["a"].ended.Len())
	}
	w.at(5000)
	w.apply(set(false, 1000, 2))
	if !w.s.byName["c"].gone {
		t.Error("c's departure is not over")
	}
	w.check()
}

// returns makes a site leave and register again, n times.
func (w *world) returns(site string, n int) (cmds []command.Command) {
	for range n {
		cmds = append(cmds, w.cmd(site, &command.Leave{}), w.registration(site, nil, nil))
		w.inc[site], w.seq[site], w.offer[site] = w.inc[site]+1, 0, 0
	}
	return cmds
}

// TestReturnsAreCountedOnce makes a site with many lanes that others declined leave and register again
// repeatedly in one entry. Each time the lanes used to be counted out and in: 200 times 256 lanes that 100
// sites had declined took 1.3 s.
func TestReturnsAreCountedOnce(t *testing.T) {
	const lanes, pairs = 50, 100
	w := newWorld(t, params(), "a", "b", "c")
	var jobs []command.JobSpec
	for i := range lanes {
		j := w.job("a", 1)
		j.Need.MilliCPU += int64(i)
		jobs = append(jobs, j)
	}
	for _, x := range []string{"b", "c"} {
		w.must(x, w.offering(x, 2*lanes))
	}
	w.submit("a", jobs...)
	for w.s.waiting < lanes {
		for _, x := range []string{"b", "c"} {
			c := &command.Decline{}
			for _, a := range w.s.Assignments(x) {
				c.Attempts = append(c.Attempts, a.AttemptRef)
			}
			w.must(x, c)
		}
	}
	w.one(w.s, maxSteps, w.returns("a", pairs)...)
	if used, most := w.s.Steps().Used, uint64(10*pairs+20*lanes); used > most {
		t.Errorf("%d returns beside %d lanes took %d steps, at most %d were to be", pairs, lanes, used, most)
	}
	w.check()
	w.reborn()
	if n := len(w.s.Assignments("b")) + len(w.s.Assignments("c")); n != 0 || w.s.present != lanes {
		t.Errorf("%d tasks are where they were declined, %d wait", n, w.s.present)
	}
}

// TestWorkBetweenReturns: what a site submits, cancels or gets back between its returns in one entry is
// matched as in separate entries.
func TestWorkBetweenReturns(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	w.must("b", w.offering("b", 1, 1))
	w.submit("a", w.job("a", 4)) // two run, two wait
	w.submit("a", w.job("a", 1))
	cmds := w.returns("a", 1)
	cmds = append(cmds, w.cmd("a", &command.Submit{Jobs: []command.JobSpec{w.job("a", 2)}}))
	cmds = append(cmds, w.returns("a", 1)...)
	cmds = append(cmds, w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 2}, Task: -1}))
	cmds = append(cmds, w.cmd("b", &command.Decline{Attempts: []command.AttemptRef{w.s.Assignments("b")[0].AttemptRef}}))
	cmds = append(cmds, w.cmd("a", &command.Leave{}))
	w.apply(cmds...)
	w.check()
	w.reborn()
	if w.s.present != 0 || w.s.waiting != 5 {
		t.Errorf("%d wait, of these %d to be matched", w.s.waiting, w.s.present)
	}
	w.register("a")
	w.check()
	if n := len(w.s.Assignments("b")); n != 2 || w.s.present != 4 {
		t.Errorf("%d tasks at b, %d wait", n, w.s.present)
	}
}

// TestSitesJoinInOneEntry: sites that join in an entry are sorted once, and can offer in the same entry.
// One by one, 9000 took a second.
func TestSitesJoinInOneEntry(t *testing.T) {
	w := newWorld(t, params(), "m")
	w.submit("m", w.job("m", 3))
	var cmds []command.Command
	for _, x := range []string{"z", "a", "n"} {
		w.inc[x] = 1
		cmds = append(cmds, w.registration(x, nil, nil), w.cmd(x, w.offering(x, 1)))
	}
	w.apply(cmds...)
	w.check()
	w.reborn()
	for _, x := range []string{"z", "a", "n"} {
		if n := len(w.s.Assignments(x)); n != 1 {
			t.Errorf("%d tasks at %s", n, x)
		}
	}
}

// TestRaisesLookAtSitesOnce: refused raises examine the sites once, until a site joins or leaves. 50,000 with 9000
// sites took 2.4 s.
func TestRaisesLookAtSitesOnce(t *testing.T) {
	w := newWorld(t, params(), "a", "b")
	raise := func() command.Code { return w.do("a", &command.Raise{Version: Version + 1}).Code }
	know := func(site string, version uint32) {
		c := w.registration(site, nil, nil)
		c.Body.(*command.Register).MaxVersion = version
		w.apply(c)
		w.inc[site], w.seq[site] = w.inc[site]+1, 0
	}
	if got := raise(); got != command.VersionTooNew || w.s.next != Version {
		t.Errorf("%v; all know %d", got, w.s.next)
	}
	know("a", Version+1)
	if got := raise(); got != command.VersionTooNew {
		t.Errorf("%v, though b does not know it", got)
	}
	w.must("b", &command.Leave{})
	if got := raise(); got != command.OK {
		t.Errorf("%v, though b has left", got)
	}
}
