package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// gatings is gated jobs of one site at random, with a broker that is killed at any point.
type gatings struct {
	chains
	gated []*gatedLink
	// failed is when a task failed last, begun which attempts were looked at.
	failed map[executor.ID]time.Time
	begun  map[executor.ID]bool
}

// gatedLink is a gated job that was accepted.
type gatedLink struct {
	id              command.JobID
	count, parallel int
	backoff, held   bool
	asked           bool
	each            *gatedLink
	// after are whole jobs that it waits for, and starts how many attempts of it have begun.
	after  []jobspec.Dependency
	starts int
	// still: it is held by hand, and what was released before has begun.
	still bool
	// priority was accepted last; those that were asked for since then may have been recorded by a broker that died
	// before it answered.
	priority   int32
	unanswered []int32
}

// TestGatesHold: whatever is submitted, ends, is held, let go and cancelled, and whenever the owner's broker is killed,
// before the sync of a turn or behind it: no more tasks of a job run than may, none begins in its pause or before the
// one that it waits for has succeeded, none is started twice, and in the end all have ended as they had to.
func TestGatesHold(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		r := foundChains(t, base, 2, 2)
		r.raise()
		g := &gatings{
			chains: chains{rig: r, a: r.sites[0]}, failed: map[executor.ID]time.Time{}, begun: map[executor.ID]bool{},
		}
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 13).Draw(t, "what") {
			case 0, 1, 2:
				g.submitGated(t)
			case 3, 4, 5:
				g.endAny(t)
			case 6:
				g.cancelGated(t)
			case 7:
				g.die(t)
			case 8, 9:
				r.settle()
			case 10:
				g.a.ticks(rapid.IntRange(1, 12).Draw(t, "ticks"))
			case 11:
				g.holdAny(t)
			case 12, 13:
				g.prioritizeAny(t)
			}
			g.checkGates()
			g.checkPriorities()
		}
		g.finishAll()
		g.checkGatedEnds()
	})
}

func (g *gatings) submitGated(t *rapid.T) {
	l := &gatedLink{
		count: rapid.IntRange(1, 3).Draw(t, "count"), parallel: rapid.IntRange(0, 2).Draw(t, "parallel"),
		backoff: rapid.Bool().Draw(t, "backoff"),
	}
	fields := fmt.Sprintf(`"count":%d`, l.count)
	if l.parallel > 0 {
		fields += fmt.Sprintf(`,"parallel":%d`, l.parallel)
	}
	if l.backoff {
		fields += `,"retry":{"max_attempts":3,"backoff":"1s","not_on":["2"]}`
	}
	if len(g.gated) > 0 && rapid.Bool().Draw(t, "each") {
		if on := rapid.SampledFrom(g.gated).Draw(t, "on"); on.count == l.count {
			l.each = on
			fields += fmt.Sprintf(`,"after":[{"job":%q,"when":"each"}]`, on.id)
		}
	}
	g.submitLink(t, l, fields)
}

// submitLink submits a job with these fields, which is known from then on.
func (g *gatings) submitLink(t *rapid.T, l *gatedLink, fields string) {
	spec, err := jobspec.ParseSpec([]byte(gatedJob(fields)))
	if err != nil {
		g.t.Fatal(err)
	}
	g.turn(t, SubmitEvent{Reqs: []node.Request{{Spec: spec}}, Reply: func(_ int, a node.Answer) {
		if a.Err != nil { // the site has forgotten the job that this one would wait for
			return
		}
		l.id = a.ID
		g.gated = append(g.gated, l)
	}})
}

// endAny has one attempt end that runs at any site.
func (g *gatings) endAny(t *rapid.T) {
	s := rapid.SampledFrom(g.sites).Draw(t, "at")
	ids := s.live()
	if len(ids) == 0 {
		return
	}
	id, exit := rapid.SampledFrom(ids).Draw(t, "attempt"), rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, "exit")
	if exit != 0 {
		g.failed[executor.ID{Job: id.Job, Task: id.Task}] = g.now
	}
	s.finish(id, exit)
}

func (g *gatings) cancelGated(t *rapid.T) {
	if len(g.gated) == 0 || rapid.IntRange(0, 2).Draw(t, "really") > 0 {
		return
	}
	l := rapid.SampledFrom(g.gated).Draw(t, "job")
	l.asked = true
	g.turn(t, CancelEvent{Num: l.id.Num, Reply: func(error) {}})
	g.obey()
}

func (g *gatings) holdAny(t *rapid.T) {
	if len(g.gated) > 0 {
		g.hold(t, rapid.SampledFrom(g.gated).Draw(t, "job"), rapid.Bool().Draw(t, "hold"))
	}
}

func (g *gatings) hold(t *rapid.T, l *gatedLink, hold bool) {
	if !hold { // whether it is answered or not
		l.held, l.still = false, false
	}
	g.turn(t, HoldEvent{Num: l.id.Num, Hold: hold, Reply: func(err error) {
		if err == nil {
			l.held = hold
		}
	}})
}

// prioritizeAny gives some jobs another priority. Once it is accepted, nothing may forget it.
func (g *gatings) prioritizeAny(t *rapid.T) {
	if len(g.gated) == 0 {
		return
	}
	num := func(l *gatedLink) uint64 { return l.id.Num }
	list := rapid.SliceOfNDistinct(rapid.SampledFrom(g.gated), 1, min(3, len(g.gated)), num).Draw(t, "jobs")
	ev := PriorityEvent{Priority: rapid.Int32Range(-2, 2).Draw(t, "priority")}
	for _, l := range list {
		ev.Nums = append(ev.Nums, l.id.Num)
	}
	ev.Reply = func(i int, err error) {
		if err == nil {
			list[i].priority, list[i].unanswered = ev.Priority, nil
		}
	}
	for _, l := range list {
		l.unanswered = append(l.unanswered, ev.Priority)
	}
	g.turn(t, ev)
	g.settle() // else the order of answers would be another than that of requests
}

// checkPriorities compares the priorities of jobs in the state with what was accepted.
func (g *gatings) checkPriorities() {
	for _, l := range g.gated {
		v, known := g.state.Job(l.id)
		is := v.Spec.Priority
		if want, ok := g.a.core.priorities.Wanted(l.id.Num); ok {
			is = want
		}
		if known && !v.State.Ended() && is != l.priority && !slices.Contains(l.unanswered, is) {
			g.t.Fatalf("job %s has priority %d, accepted was %d", l.id, is, l.priority)
		}
	}
}

// stateOf returns the state of a task, by its own broker or the federation.
func (g *gatings) stateOf(id command.JobID, task uint32) fsm.TaskState {
	if h := g.a.core.home.Find(id.Num); h != nil {
		return h.Tasks[task].State
	}
	if a := g.a.core.after.Find(id.Num); a != nil {
		return a.State()
	}
	if tasks, _ := g.state.Tasks(id, task, 1); len(tasks) == 1 {
		return tasks[0].State
	}
	return fsm.Queued
}

// checkGates looks at what runs, and at what has begun since the last time.
func (g *gatings) checkGates() {
	for _, l := range g.gated {
		run := 0
		for _, s := range g.sites {
			for id := range s.running {
				if id.Job != l.id.String() {
					continue
				}
				run++
				if !g.begun[id] {
					g.begun[id] = true
					g.checkBegun(l, s, id)
				}
			}
		}
		if l.parallel > 0 && run > l.parallel {
			g.t.Fatalf("%d tasks of job %s run, %d may", run, l.id, l.parallel)
		}
	}
}

func (g *gatings) checkBegun(l *gatedLink, s *rigSite, id executor.ID) {
	since, failed := g.failed[executor.ID{Job: id.Job, Task: id.Task}]
	if failed && l.backoff && s.began[id].Sub(since) < 749*time.Millisecond {
		g.t.Fatalf("%s began %s after it had failed", id, s.began[id].Sub(since))
	}
	if l.each != nil && g.stateOf(l.each.id, id.Task) != fsm.TaskSucceeded {
		g.t.Fatalf("%s began, and task %d of job %s is %s", id, id.Task, l.each.id, g.stateOf(l.each.id, id.Task))
	}
}

// finishAll lets go what is held, and has all that runs succeed, until nothing is left.
func (g *gatings) finishAll() {
	g.settle()
	for _, l := range g.gated {
		g.a.turn(HoldEvent{Num: l.id.Num, Reply: func(error) {}})
	}
	for range 400 {
		g.settle()
		g.obey()
		for _, s := range g.sites {
			for _, id := range s.live() {
				s.finish(id, 0)
				g.checkGates()
			}
		}
		g.a.ticks(2)
		open := 0
		for _, l := range g.gated {
			for task := range uint32(l.count) {
				if !g.stateOf(l.id, task).Ended() {
					open++
				}
			}
		}
		if open == 0 {
			g.settle()
			return
		}
	}
	for _, l := range g.gated {
		if v, ok := g.state.Job(l.id); ok && !v.State.Ended() {
			g.t.Fatalf("job %s %+v waits forever: %v, %q", l.id, l, v.Counts, g.a.core.Gates(l.id.Num))
		}
	}
	g.t.Fatal("something waits forever")
}

// checkGatedEnds compares how the tasks have ended with what they waited for.
func (g *gatings) checkGatedEnds() {
	for _, l := range g.gated {
		for task := range uint32(l.count) {
			state := g.stateOf(l.id, task)
			due := l.each == nil || g.stateOf(l.each.id, task) == fsm.TaskSucceeded
			if state == fsm.TaskCancelled && !l.asked && due {
				g.t.Fatalf("task %s/%d is cancelled, and nobody has asked for it", l.id, task)
			}
			if l.each != nil && g.stateOf(l.each.id, task) != fsm.TaskSucceeded && state != fsm.TaskCancelled {
				g.t.Fatalf("task %s/%d is %s, and the one before %s", l.id, task, state, g.stateOf(l.each.id, task))
			}
		}
	}
	g.a.ticks(1)
	for num, j := range g.a.core.gates.All() {
		// One that nobody was answered for may run yet.
		if v, known := g.state.Job(command.JobID{Site: "a", Num: num}); !known || v.State.Ended() {
			g.t.Fatalf("job %d is known after its end: %+v", num, j)
		}
	}
}
