package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestDeliveriesAreNaive follows what is delivering through random histories of single commands, and decides from the
// command alone, and what the task showed before it, what must have become of it. It shares nothing with the code that
// executes them.
func TestDeliveriesAreNaive(t *testing.T) {
	entered, left := 0, map[TaskState]int{}
	all := []TaskState{TaskSucceeded, TaskFailed, TaskLost, TaskCancelled, Queued}
	unseen := func(to TaskState) bool { return left[to] == 0 }
	// One round of random histories may have no failure that is final: then more are played.
	for round := 0; round == 0 || round < 20 && !t.Failed() && slices.ContainsFunc(all, unseen); round++ {
		rapid.Check(t, func(rt *rapid.T) {
			m := newModel(rt, realBounds())
			m.lone, m.alone = true, true
			o := &deliveryOracle{m: m, left: left}
			m.sent = o.before
			m.amongDeliveries(func(t *rapid.T) { m.t, m.w.t = t, t }, nil)
			entered += o.entered
		})
	}
	for _, to := range all {
		if left[to] == 0 {
			t.Errorf("no task has become %v: %d began, %v", to, entered, left)
		}
	}
}

// TestStateMachineAmongDeliveries is TestStateMachine with tasks that mostly succeed elsewhere and deliver, at bounds
// that are reached, and in entries that leave work to the next ones.
func TestStateMachineAmongDeliveries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := smallBounds()
		b.steps = rapid.SampledFrom([]uint64{100, 2000, maxSteps, maxSteps}).Draw(rt, "steps")
		m := newModel(rt, b)
		m.amongDeliveries(m.invariants, m.restore)
	})
}

// TestEventsAmongDeliveries is TestEventsRebuildTheState for such histories.
func TestEventsAmongDeliveries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, realBounds())
		f := &follower{tasks: map[command.JobID][]followed{}, away: map[string]bool{}}
		m.w.s.Observe(&f.events)
		m.twin.Observe(&f.twin)
		m.amongDeliveries(func(t *rapid.T) { f.check(t, m.w.s) }, func(t *rapid.T) {
			m.restore(t)
			m.twin.Observe(&f.twin)
		})
	})
}

// amongDeliveries plays histories in which much is delivering. restore may be nil.
func (m *model) amongDeliveries(check, restore func(*rapid.T)) {
	m.beginDeliveries()
	steps := map[string]func(*rapid.T){
		"": check, "submit": m.submitOutputs, "submit2": m.submitOutputs, "submit3": m.submit, "offer": m.seldom(m.offer),
		"started": m.started, "complete": m.complete, "succeed": m.succeed, "succeed2": m.succeed, "succeed3": m.succeed,
		"deliver": m.deliver, "deliver2": m.deliver, "cancel": m.cancelAny, "cancel2": m.seldom(m.cancel), "bound": m.seldom(m.bound),
		"decline": m.seldom(m.decline), "lost": m.seldom(m.lost), "register": m.seldom(m.register), "forget": m.seldom(m.forget),
		"leave": m.seldom(m.leave), "suspect": m.suspect, "params": m.seldom(m.params), "tick": m.tick, "recover": m.seldom(m.recover),
	}
	if restore != nil {
		steps["restore"] = restore
	}
	m.t.Repeat(steps)
}

// beginDeliveries has each site run tasks of the others, and some of them deliver.
func (m *model) beginDeliveries() {
	tell := func() {
		if m.heard != nil {
			m.heard()
		}
	}
	for _, x := range modelSites[:3] {
		m.send(m.w.cmd(x, m.w.offering(x, 2, 1)))
		tell()
		j := m.w.job(x, 3)
		j.Delivers, j.Not, j.MaxAttempts, j.OnLoss = true, []string{x}, 2, command.Immediate
		m.send(m.w.cmd(x, &command.Submit{Jobs: []command.JobSpec{j}}))
		tell()
	}
	for range modelSites {
		m.succeed(m.t)
		tell()
	}
}

// submitOutputs submits a small job that delivers.
func (m *model) submitOutputs(t *rapid.T) {
	m.t = t
	site := m.site()
	j := m.w.job(site, rapid.Uint32Range(1, 4).Draw(t, "count"))
	j.Delivers, j.MaxAttempts = true, rapid.Uint32Range(1, 2).Draw(t, "attempts")
	j.OnLoss = command.OnLoss(rapid.IntRange(0, 2).Draw(t, "onLoss"))
	if rapid.Bool().Draw(t, "elsewhere") {
		j.Not = []string{site}
	}
	m.do(site, &command.Submit{Jobs: []command.JobSpec{j}})
}

// succeed ends most of what a site runs.
func (m *model) succeed(t *rapid.T) {
	m.t = t
	site, c := m.site(), &command.Complete{}
	for _, a := range m.w.s.Assignments(site) {
		if rapid.IntRange(0, 3).Draw(t, "keep") == 0 {
			continue
		}
		m.dead[taskKey{m.w.s.findJob(a.Job), a.Task}] = true
		e := ended(a, command.Succeeded, 10)
		e.Output = m.drawOutput()
		c.Attempts = append(c.Attempts, e)
	}
	m.do(site, c)
}

// deliveryOracle compares each entry with what the tasks showed before it.
type deliveryOracle struct {
	m       *model
	entered int
	left    map[TaskState]int
}

// shownTask is a task of a job as it is shown.
type shownTask struct {
	TaskView
	spec command.JobSpec
}

type shownKey struct {
	job  command.JobID
	task uint32
}

func (o *deliveryOracle) shown() map[shownKey]shownTask {
	out := map[shownKey]shownTask{}
	for _, x := range o.m.w.s.Sites() {
		for j := range o.m.w.s.OwnJobs(x.ID) {
			list, _ := o.m.w.s.Tasks(j.ID, 0, 1000)
			for _, v := range list {
				out[shownKey{j.ID, v.Index}] = shownTask{v, j.Spec}
			}
		}
	}
	return out
}

func (o *deliveryOracle) charged() (n uint64) {
	for _, c := range o.m.w.s.Ledger().Matrix {
		n += c.Tasks
	}
	return n
}

// before is called with an entry, what it returns after it was applied.
func (o *deliveryOracle) before(b *command.Batch) (after func()) {
	was, charged := o.shown(), o.charged()
	words, ends, cancels := map[shownKey]command.Delivered{}, map[shownKey]command.Ended{}, map[shownKey]bool{}
	by := ""
	for _, c := range b.Commands {
		if by = c.ID.Site; !o.heard(&c) {
			continue
		}
		switch body := c.Body.(type) {
		case *command.Deliver:
			o.words(by, body, words)
		case *command.Complete:
			for _, e := range body.Attempts {
				ends[shownKey{e.Job, e.Task}] = e
			}
		case *command.Cancel:
			for k := range was {
				of := k.job == body.Job && by == k.job.Site
				cancels[k] = cancels[k] || of && (body.Task < 0 || body.Task == int64(k.task))
			}
		}
	}
	return func() {
		is := o.shown()
		for k, v := range was {
			if v.Delivering {
				o.leaves(k, v, is, words, cancels[k])
			}
		}
		for k, v := range is {
			if e, reported := ends[k]; reported || v.Delivering {
				o.enters(k, was[k], v, e, by)
			}
		}
		if len(ends) == 0 && o.charged() != charged && by != "" && b.Commands[0].Body.Kind() != command.KindUsage {
			o.m.t.Fatalf("%T charged %d runs", b.Commands[0].Body, o.charged()-charged)
		}
	}
}

// heard reports whether a command is its site's next one, of a broker that is present.
func (o *deliveryOracle) heard(c *command.Command) bool {
	state, inc := o.m.w.s.SiteState(c.ID.Site)
	return inc == c.ID.Incarnation && state != SiteGone && state != Left
}

// words notes what an owner says, unless it says something of others' jobs.
func (o *deliveryOracle) words(by string, body *command.Deliver, words map[shownKey]command.Delivered) {
	for _, d := range body.Attempts {
		if d.Job.Site != by {
			return
		}
	}
	for _, d := range body.Attempts {
		words[shownKey{d.Job, d.Task}] = d
	}
}

// gone reports whether a site's departure is over: then it has no quota's share, and is shown as having left.
func (o *deliveryOracle) gone(site string) bool { return o.m.w.s.byName[site].gone }

// leaves checks what became of a task that was delivering.
func (o *deliveryOracle) leaves(
	k shownKey, was shownTask, all map[shownKey]shownTask, words map[shownKey]command.Delivered, cancelled bool,
) {
	is, kept := all[k]
	d, said := words[k]
	said = said && d.Attempt == was.Attempt && d.Token == was.Token
	want, failures, losses := Running, was.Failures, was.Losses
	switch {
	case said && d.Outcome == command.DeliveryOK:
		want = TaskSucceeded
	case said && d.Outcome == command.DeliveryLost:
		if losses++; was.spec.OnLoss == command.Never || losses >= MaxLosses {
			want = TaskLost
		} else {
			want = Queued
		}
	case said:
		if failures++; failures >= was.spec.MaxAttempts {
			want = TaskFailed
		} else {
			want = Queued
		}
	case cancelled:
		want = TaskCancelled
	case o.gone(k.job.Site):
		want = TaskLost
	}
	if want != Running {
		o.left[want]++
	}
	if !kept { // its job has left with its end
		if !want.Ended() {
			o.m.t.Fatalf("%v has left, should be %v", k, want)
		}
		return
	}
	ok := is.State == want && !is.Delivering
	switch want { //nolint:exhaustive // the others are as they are said to be
	case Running:
		ok = is.Delivering && is.Token == was.Token && is.Attempt == was.Attempt && is.Output == was.Output &&
			is.Measured == was.Measured
	case Queued: // and perhaps assigned at once
		ok = (is.State == Queued || is.State == Assigned && is.Attempt > was.Attempt) && !is.Delivering
	}
	if !ok || is.Failures != failures || is.Losses < losses || said && is.Losses != losses {
		o.m.t.Fatalf("%v was\n%+v\nand is\n%+v\nshould be %v with %d failures, %d losses", k, was, is, want, failures, losses)
	}
}

// enters checks what became of a task of which an end was reported, or that is delivering.
func (o *deliveryOracle) enters(k shownKey, was, is shownTask, e command.Ended, by string) {
	began := is.Delivering && !was.Delivering
	mayBegin := e.Outcome == command.Succeeded && is.spec.Delivers && by != k.job.Site && is.Attempt == e.Attempt &&
		is.Token == e.Token && is.Site == by && is.Output == e.Output
	if began && !mayBegin {
		o.m.t.Fatalf("%v is delivering after %+v of %s: %+v", k, e, by, is)
	}
	if began {
		o.entered++
	}
	runs := (was.State == Assigned || was.State == Running) && !was.Delivering
	if !runs || was.Attempt != e.Attempt || was.Token != e.Token || was.Site != by || e.Outcome != command.Succeeded {
		return
	}
	switch {
	case !was.spec.Delivers || by == k.job.Site:
		if is.State != TaskSucceeded {
			o.m.t.Fatalf("%v has succeeded and is %+v", k, is)
		}
	case o.gone(k.job.Site):
		if is.State != TaskLost {
			o.m.t.Fatalf("%v of a site that is gone is %+v", k, is)
		}
	case !began:
		o.m.t.Fatalf("%v has succeeded at %s and is %+v", k, by, is)
	}
}
