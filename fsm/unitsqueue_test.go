package fsm

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// TestUnitsAreWhatWaitsAndRuns plays suspicions, losses, returns, cancels, declines and switches of the policy,
// several commands an entry and with entries that do little. As long as nothing that ran has ended, each site's own
// virtual queue under ALONE has as many units as its waiting and running tasks need: none is left behind, none is
// missing. Each entry is also applied to a restored state, and leaves the same hash.
func TestUnitsAreWhatWaitsAndRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		u := newUnits(rt)
		for range rapid.IntRange(1, 25).Draw(rt, "entries") {
			u.w.s.bounds.steps = rapid.SampledFrom([]uint64{1, 60, 150, 300, 600, maxSteps}).Draw(rt, "steps")
			var cmds []command.Command
			for range rapid.IntRange(0, 4).Draw(rt, "commands") {
				cmds = append(cmds, u.draw()...)
			}
			if u.play(cmds); u.hasEnded() {
				return // the queue may expect that it still runs
			}
			u.compare()
		}
	})
}

// units is a world with a restored twin that does the same.
type units struct {
	t      *rapid.T
	w      *world
	twin   *State
	params command.Params
	events []Event
}

var unitSites = []string{"a", "b", "c"}

func newUnits(t *rapid.T) *units {
	u := &units{t: t, params: params()}
	u.params.MarginMs = 700
	u.w = newWorld(t, u.params, unitSites...)
	u.w.must("a", &command.Raise{Version: command.GatesVersion})
	u.w.at(5000)
	u.w.apply()
	u.w.must("b", u.w.offering("b", 3))
	u.w.must("c", u.w.offering("c", 2))
	u.w.s.Observe(&u.events)
	return u
}

// draw returns a few similar commands.
func (u *units) draw() []command.Command {
	t, w := u.t, u.w
	by, site := rapid.SampledFrom(unitSites).Draw(t, "by"), rapid.SampledFrom(unitSites).Draw(t, "site")
	switch rapid.IntRange(0, 13).Draw(t, "what") {
	case 0, 1:
		j := w.job(by, rapid.Uint32Range(1, 4).Draw(t, "count"))
		j.OnLoss, j.Gated, j.MaxAttempts = command.Immediate, rapid.Bool().Draw(t, "gated"), 2
		return []command.Command{w.cmd(by, &command.Submit{Jobs: []command.JobSpec{j}})}
	case 2, 3, 4:
		return []command.Command{w.cmd(by, &command.Suspect{
			Site: site, Incarnation: w.inc[site], On: rapid.Bool().Draw(t, "on"),
		})}
	case 5:
		return u.decline(site)
	case 6:
		return u.cancel(by)
	case 7:
		return []command.Command{w.cmd(by, &command.SiteLost{Site: site, Incarnation: w.inc[site], Term: w.term})}
	case 8:
		return []command.Command{u.register(site)}
	case 9:
		u.params.Policy = rapid.SampledFrom([]string{sched.Alone, sched.CE, sched.Shapley, sched.SimplDirect}).Draw(t, "policy")
		return []command.Command{w.cmd(by, &command.SetParams{Params: u.params})}
	}
	if n := w.num[by]; n > 0 && rapid.IntRange(0, 3).Draw(t, "release") > 0 {
		return []command.Command{w.cmd(by, releasing(rapid.Uint64Range(1, n).Draw(t, "job"), u.drawRuns()...))}
	}
	return []command.Command{w.cmd(site, w.offering(site, rapid.Int64Range(0, 3).Draw(t, "cores")))}
}

// drawRuns draws which of a job's tasks are released and which are held.
func (u *units) drawRuns() (runs []command.GateRun) {
	for from := uint32(0); from < 4; {
		v := command.GateRun{From: from, To: from + rapid.Uint32Range(1, 4).Draw(u.t, "tasks"), Attempt: command.AnyAttempt}
		v.Do = command.GateAction(rapid.IntRange(0, 1).Draw(u.t, "hold"))
		runs, from = append(runs, v), v.To
	}
	return runs
}

func (u *units) decline(site string) (cmds []command.Command) {
	for _, a := range u.w.s.Assignments(site) {
		cmds = append(cmds, u.w.cmd(site, &command.Decline{Attempts: []command.AttemptRef{a.AttemptRef}}))
	}
	return cmds
}

func (u *units) cancel(by string) []command.Command {
	n := u.w.num[by]
	if n == 0 {
		return nil
	}
	id := command.JobID{Site: by, Num: rapid.Uint64Range(1, n).Draw(u.t, "job")}
	return []command.Command{u.w.cmd(by, &command.Cancel{Job: id, Task: rapid.Int64Range(0, 3).Draw(u.t, "task")})}
}

// register makes a site begin again with everything that it runs, or with nothing.
func (u *units) register(site string) command.Command {
	var held []command.AttemptRef
	if rapid.Bool().Draw(u.t, "held") {
		for _, a := range u.w.s.Assignments(site) {
			held = append(held, a.AttemptRef)
		}
	}
	c := u.w.registration(site, held, nil)
	u.w.inc[site]++
	u.w.seq[site] = 0
	return c
}

// play gives an entry to the state and to one that was restored before; and then perhaps all entries that continue
// it.
func (u *units) play(cmds []command.Command) {
	var err error
	if u.twin, err = reborn(u.w.s); err != nil {
		u.t.Fatal(err)
	}
	u.entry(cmds)
	if rapid.Bool().Draw(u.t, "drain") {
		for u.w.s.Pending() {
			u.entry(nil)
		}
	}
}

func (u *units) entry(cmds []command.Command) {
	u.twin.bounds.steps = u.w.s.bounds.steps
	for _, s := range []*State{u.w.s, u.twin} {
		if _, err := s.Apply(&command.Batch{Term: u.w.term, Elapsed: u.w.base, Commands: cmds}); err != nil {
			u.t.Fatal(err)
		}
		if err := s.check(); err != nil {
			u.t.Fatal(err)
		}
	}
	if u.twin.Hash() != u.w.s.Hash() || u.twin.Steps().Used != u.w.s.Steps().Used {
		u.t.Fatalf("after entry %d a restored replica differs", u.w.s.index)
	}
}

// hasEnded reports whether the end of an attempt on a machine was reported.
func (u *units) hasEnded() (ended bool) {
	for i := range u.events {
		e := &u.events[i]
		ends := e.Kind == EventTaskEnded || e.Kind == EventTaskHeld
		ended = ended || ends && e.Attempt > 0 && e.Machine != ""
	}
	u.events = u.events[:0]
	return ended
}

// compare recounts the sites' own queues when nothing is left to be done.
func (u *units) compare() {
	s := u.w.s
	if s.waits == nil || s.Policy() != sched.Alone || s.unfinished() {
		return
	}
	want, i := s.unitsOf(), 0
	for q := range s.waits.queues.All {
		if i > 0 && q.State().Units != want[i-1] { // the first is that of all sites
			u.t.Fatalf("the queue of %s has %d units, %d wait and run", s.sites[i-1].name, q.State().Units, want[i-1])
		}
		i++
	}
}

// unitsOf counts by site what runs, and what waits if the site is present.
func (s *State) unitsOf() []int64 {
	want := make([]int64, len(s.sites))
	for seq, j := range s.jobs.All() {
		if j.over() {
			continue
		}
		n := int64(len(s.liveOf(seq)))
		if s.sites[j.owner].present() {
			n += int64(j.waiting())
		}
		want[j.owner] += n * widthOf(j.class.Need)
	}
	return want
}
