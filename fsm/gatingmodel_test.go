package fsm

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestStateMachineAmongGates is TestStateMachine with jobs that are mostly gated, whose owners release, hold and end
// their tasks all the time, at bounds that are reached, and in entries that leave work to the next ones.
func TestStateMachineAmongGates(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := smallBounds()
		b.steps = rapid.SampledFrom([]uint64{1, 100, 2000, maxSteps, maxSteps}).Draw(rt, "steps")
		m := newModel(rt, b)
		m.renewed = rapid.IntRange(0, 3).Draw(rt, "renewed") == 0
		m.amongGates(m.invariants, m.restore)
	})
}

// TestEventsAmongGates is TestEventsRebuildTheState for such histories.
func TestEventsAmongGates(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, realBounds())
		f := &follower{tasks: map[command.JobID][]followed{}, away: map[string]bool{}}
		m.w.s.Observe(&f.events)
		m.twin.Observe(&f.twin)
		m.amongGates(func(t *rapid.T) { f.check(t, m.w.s) }, func(t *rapid.T) {
			m.restore(t)
			m.twin.Observe(&f.twin)
		})
	})
}

// amongGates plays histories in which much is gated. restore may be nil.
func (m *model) amongGates(check, restore func(*rapid.T)) {
	m.beginGates()
	steps := map[string]func(*rapid.T){
		"": check, "submit": m.submitGated, "submit2": m.submitGated, "submit3": m.submit, "offer": m.seldom(m.offer),
		"release": m.release, "release2": m.release, "release3": m.release, "release4": m.releaseAll,
		"started": m.started, "complete": m.complete, "fail": m.failAll, "fail2": m.failAll, "succeed": m.succeed,
		"deliver": m.deliver, "cancel": m.cancelAny, "cancel2": m.cancel, "bound": m.seldom(m.bound), "renice": m.seldom(m.renice),
		"decline": m.decline, "handBack": m.handBack, "lost": m.seldom(m.lost), "register": m.seldom(m.register),
		"forget": m.seldom(m.forget), "leave": m.seldom(m.leave), "suspect": m.suspect, "params": m.seldom(m.params),
		"tick": m.tick, "recover": m.seldom(m.recover),
	}
	if restore != nil {
		steps["restore"] = restore
	}
	m.t.Repeat(steps)
}

// beginGates raises the version and has each site run gated tasks of the others.
func (m *model) beginGates() {
	tell := func() {
		if m.heard != nil {
			m.heard()
		}
	}
	m.send(m.w.cmd("a", &command.Raise{Version: command.GatesVersion}))
	m.asked = max(m.asked, command.GatesVersion)
	tell()
	for _, x := range modelSites[:3] {
		m.send(m.w.cmd(x, m.w.offering(x, 2, 1)))
		tell()
		j := m.w.job(x, 4)
		j.Gated, j.Delivers, j.MaxAttempts, j.OnLoss = true, x == "a", 3, command.Immediate
		m.send(m.w.cmd(x, &command.Submit{Jobs: []command.JobSpec{j}}))
		tell()
		m.send(m.w.cmd(x, &command.Release{Jobs: []command.JobGates{{Num: j.Num, Runs: []command.GateRun{{To: 3}}}}}))
		tell()
	}
}

// submitGated submits a job that is gated.
func (m *model) submitGated(t *rapid.T) {
	m.t = t
	site := m.site()
	j := m.w.job(site, uint32(rapid.SampledFrom([]int{1, 3, 6, 20}).Draw(t, "count")))
	j.Gated, j.MaxAttempts = true, rapid.Uint32Range(1, 4).Draw(t, "attempts")
	j.OnLoss, j.Delivers = command.OnLoss(rapid.IntRange(0, 2).Draw(t, "onLoss")), rapid.Bool().Draw(t, "delivers")
	j.Need.MilliCPU = rapid.Int64Range(1, 2).Draw(t, "cores") * 1000
	m.do(site, &command.Submit{Jobs: []command.JobSpec{j}})
}

// release moves some tasks of some jobs of a site, some of which are not where they are to be taken from.
func (m *model) release(t *rapid.T) {
	m.t = t
	site := m.site()
	nums := append(slices.Sorted(maps.Keys(m.w.s.byName[site].nums)), 1<<40)
	c := &command.Release{}
	for range rapid.IntRange(1, 3).Draw(t, "jobs") {
		c.Jobs = append(c.Jobs, command.JobGates{Num: rapid.SampledFrom(nums).Draw(t, "num")})
	}
	slices.SortFunc(c.Jobs, func(a, b command.JobGates) int { return int(int64(a.Num) - int64(b.Num)) })
	c.Jobs = slices.CompactFunc(c.Jobs, func(a, b command.JobGates) bool { return a.Num == b.Num })
	for i := range c.Jobs {
		c.Jobs[i].Runs = m.drawRuns(command.JobID{Site: site, Num: c.Jobs[i].Num})
	}
	m.do(site, c)
}

// drawRuns draws runs over a job's tasks: mostly with the attempt that a task of them has.
func (m *model) drawRuns(id command.JobID) (runs []command.GateRun) {
	seq := m.w.s.findJob(id)
	for from := uint32(0); from < 20; {
		v := command.GateRun{
			From: from + rapid.Uint32Range(0, 3).Draw(m.t, "from"),
			Do:   command.GateAction(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, 2, 3}).Draw(m.t, "do")),
		}
		v.To = v.From + uint32(rapid.SampledFrom([]int{1, 1, 1, 3, 20}).Draw(m.t, "tasks"))
		from = v.To
		if seq > 0 && v.From < m.w.s.jobs.Get(seq).count {
			v.Attempt = m.w.s.viewTask(seq, m.w.s.jobs.Get(seq), v.From).Attempt
		}
		switch rapid.IntRange(0, 7).Draw(m.t, "whose") {
		case 0:
			v.Attempt++
		case 1, 2:
			v.Attempt = command.AnyAttempt
		}
		if v.Do >= command.GateFail {
			v.Reason = rapid.SampledFrom([]string{"", "why"}).Draw(m.t, "reason")
		}
		if rapid.Bool().Draw(m.t, "skip") {
			continue
		}
		runs = append(runs, v)
	}
	return runs
}

// releaseAll releases what a site has held, or holds all that waits.
func (m *model) releaseAll(t *rapid.T) {
	m.t = t
	site, c := m.site(), &command.Release{}
	do := command.GateAction(rapid.IntRange(0, 3).Draw(t, "hold") / 3)
	for _, num := range slices.Sorted(maps.Keys(m.w.s.byName[site].nums)) {
		c.Jobs = append(c.Jobs, command.JobGates{Num: num, Runs: []command.GateRun{{
			To: command.MaxCount, Attempt: command.AnyAttempt, Do: do,
		}}})
	}
	m.do(site, c)
}

// prioritize changes the priorities of some jobs, wherever they are.
func (m *model) prioritize(t *rapid.T) {
	m.t = t
	site := m.site()
	nums := append(slices.Sorted(maps.Keys(m.w.s.byName[site].nums)), 1<<40)
	var c command.Prioritize
	for range rapid.IntRange(1, 4).Draw(t, "jobs") {
		c.Jobs = append(c.Jobs, command.Priority{
			Num: rapid.SampledFrom(nums).Draw(t, "num"), Priority: rapid.Int32Range(-1, 1).Draw(t, "priority"),
		})
	}
	m.do(site, &c)
}
