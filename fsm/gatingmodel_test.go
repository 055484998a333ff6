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
	m.send(m.w.cmd("a", &command.Raise{Version: Version}))
	m.asked = max(m.asked, Version)
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

// TestWaitsAreNaiveAmongGates is TestWaitsAreNaive with tasks that are held, released, and held again after an attempt.
func TestWaitsAreNaiveAmongGates(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, v := newMirrored(rt)
		one(m, v, m.params)(rt)
		m.heard = v.hear
		m.beginGates()
		rt.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.t, m.w.t, v.t = t, t, t
				v.hear()
			},
			"submit": one(m, v, m.submitGated), "submit2": one(m, v, m.submitGated), "submit3": one(m, v, m.submit),
			"release": one(m, v, m.release), "release2": one(m, v, m.release), "release3": one(m, v, m.releaseAll),
			"succeed": one(m, v, m.succeed), "fail": one(m, v, m.failAll), "complete": one(m, v, m.complete),
			"deliver": one(m, v, m.deliver), "cancel": one(m, v, m.cancelAny), "cancel2": one(m, v, m.cancel),
			"suspect": one(m, v, m.suspect), "lost": one(m, v, m.lost), "register": one(m, v, m.register),
			"leave": one(m, v, m.leave), "forget": one(m, v, m.forget), "tick": one(m, v, m.tick),
			"params": one(m, v, m.params), "policy": one(m, v, m.params), "decline": one(m, v, m.decline),
		})
	})
}

// TestGatesAreNaive decides from each command alone, and what each task showed before it, what may have become of what
// is held, and what a Release moves. It shares nothing with the code that executes them.
func TestGatesAreNaive(t *testing.T) {
	moves := map[command.GateAction]int{}
	again := 0
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, realBounds())
		m.lone = true
		m.beginGates()
		m.alone = true
		o := &gateOracle{deliveryOracle: deliveryOracle{m: m}, moves: moves}
		m.sent = o.before
		m.amongGates(func(t *rapid.T) { m.t, m.w.t = t, t }, nil)
		again += o.again
	})
	for do := command.GateRelease; do <= command.GateCancel; do++ {
		if moves[do] == 0 {
			t.Errorf("no task was moved by action %d: %v", do, moves)
		}
	}
	if again == 0 {
		t.Error("no task was held again")
	}
}

// gateOracle compares each entry with what the tasks showed before it.
type gateOracle struct {
	deliveryOracle
	moves map[command.GateAction]int
	again int
}

// before is called with an entry, what it returns after it was applied.
func (o *gateOracle) before(b *command.Batch) (after func()) {
	was := o.shown()
	want := map[shownKey]command.GateAction{}
	cancelled, doubted := func(shownKey) bool { return false }, false
	for _, c := range b.Commands {
		if !o.heard(&c) || o.m.w.s.version < command.Since(c.Body) {
			continue
		}
		switch body := c.Body.(type) {
		case *command.Release:
			o.releases(c.ID.Site, body, was, want)
		case *command.Cancel:
			cancelled = func(k shownKey) bool {
				return k.job == body.Job && c.ID.Site == k.job.Site && (body.Task < 0 || body.Task == int64(k.task))
			}
		case *command.Complete:
			doubted = true // an earlier attempt may have succeeded
		}
	}
	return func() {
		is := o.shown()
		for k, v := range was {
			now, kept := is[k]
			if do, moved := want[k]; moved {
				o.moves[do]++
				o.judge(k, v, now, kept, do)
				continue
			}
			if v.State == Held && kept {
				away := now.State == Withdrawn || now.State == TaskLost && o.gone(k.job.Site)
				ok := now.State == Held && now.Attempt == v.Attempt && now.ExitCode == v.ExitCode || away ||
					now.State == TaskCancelled && cancelled(k) || doubted && now.State == TaskSucceeded ||
					doubted && now.Delivering
				if !ok {
					o.m.t.Fatalf("%v was held and is %+v", k, now)
				}
			}
			if v.State != Held && v.State != Withdrawn && now.State == Held {
				o.again++
				if !v.spec.Gated || now.Attempt == 0 || now.Failures >= v.spec.MaxAttempts {
					o.m.t.Fatalf("%v was %v and is held: %+v", k, v.State, now)
				}
			}
		}
	}
}

// judge checks one task that a Release was to move.
func (o *gateOracle) judge(k shownKey, was, is shownTask, kept bool, do command.GateAction) {
	ok := false
	switch do {
	case command.GateRelease: // and perhaps assigned at once
		ok = is.State == Queued && is.Attempt == was.Attempt || is.State == Assigned && is.Attempt == was.Attempt+1
	case command.GateHold:
		ok = is.State == Held && is.Attempt == was.Attempt
	case command.GateFail:
		ok = !kept || is.State == TaskFailed && is.Attempt == was.Attempt && is.ExitCode == was.ExitCode
	case command.GateCancel:
		ok = !kept || is.State == TaskCancelled && is.Attempt == was.Attempt
	}
	if !ok {
		o.m.t.Fatalf("%v was %+v, %d made it %+v, kept %v", k, was, do, is, kept)
	}
}

// releases notes which tasks a Release moves.
func (o *gateOracle) releases(
	by string, c *command.Release, was map[shownKey]shownTask, want map[shownKey]command.GateAction,
) {
	for _, g := range c.Jobs {
		ungated := o.m.w.s.version >= command.HoldVersion && g.Holds() // the job need not be gated
		for _, v := range g.Runs {
			from := Held
			if v.Do == command.GateHold {
				from = Queued
			}
			left := command.MaxGatePieces
			for _, ran := range []bool{false, true} {
				last, lastMs := int64(-2), int64(-1)
				for i := v.From; i < v.To; i++ {
					k := shownKey{command.JobID{Site: by, Num: g.Num}, i}
					t, ok := was[k]
					if !ok || !(t.spec.Gated || ungated) || t.State != from || (t.Attempt > 0) != ran {
						continue
					}
					if !ran && v.Attempt != 0 && v.Attempt != command.AnyAttempt || ran && v.Attempt == 0 {
						continue
					}
					joined := !ran && last == int64(i)-1 && (from == Held || lastMs == t.QueuedMs)
					if !joined {
						if left == 0 {
							break
						}
						left--
					}
					last, lastMs = int64(i), t.QueuedMs
					if !ran || v.Attempt == command.AnyAttempt || v.Attempt == t.Attempt {
						want[k] = v.Do
					}
				}
			}
		}
	}
}
