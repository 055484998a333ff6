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
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// workflows is jobs of one site that wait for whole others, or task by task, and for their turn, at random, with a
// broker that is killed at any point and machines that lose what they run.
type workflows struct {
	gatings
	// lost counts by job what its machines have lost.
	lost map[string]int
	// seen counts what there was, in all runs of the test.
	seen map[string]int
}

// TestWorkflowsGoOn: whatever waits for whole jobs, for single tasks and for its turn at once, whatever ends, is lost,
// cancelled, held by hand and let go, and whenever the owner's broker is killed: nothing begins before what it waits
// for has ended as asked, nor in its pause, nor beyond what may run, nor while it is held by hand; what can no longer
// begin is cancelled with its reason; nothing is started twice but after a failure or a loss; and all ends.
func TestWorkflowsGoOn(t *testing.T) {
	base := t.TempDir()
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		r := foundChains(t, base, 2, 6)
		r.raise()
		w := &workflows{lost: map[string]int{}, seen: seen, gatings: gatings{
			chains: chains{rig: r, a: r.sites[0]}, failed: map[executor.ID]time.Time{}, begun: map[executor.ID]bool{},
		}}
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			w.step(t)
			w.checkAll()
		}
		w.endSteps(t)
		for _, l := range w.gated {
			l.still = false // all are let go
		}
		w.finishAll()
		w.checkAll()
		w.checkWorkflows()
	})
	for _, what := range []string{
		"after", "after and parallel", "each of what is gated", "lost", "in vain", "cancelled", "held by hand over a start",
	} {
		if seen[what] == 0 {
			t.Errorf("no job was %s: %v", what, seen)
		} else {
			t.Log(what, seen[what])
		}
	}
}

func (w *workflows) step(t *rapid.T) {
	switch rapid.IntRange(0, 12).Draw(t, "what") { // small ones are drawn more often
	case 0, 1, 8:
		w.submitStep(t)
	case 2:
		w.holdOverStart(t)
	case 12:
		w.holdRecent(t, rapid.Bool().Draw(t, "hold"))
	case 3, 10:
		w.settleStill()
	case 4, 9:
		w.endAny(t)
	case 5:
		w.cancelGated(t)
	case 6:
		w.lose(t)
	case 7:
		w.a.ticks(rapid.IntRange(1, 12).Draw(t, "ticks"))
	case 11:
		w.noteStill()
		w.die(t)
	}
}

// endSteps has what the test counts in nearly every run, for few are played under the race detector: drawn alone, one
// run of the test in three had nothing of some kind.
func (w *workflows) endSteps(t *rapid.T) {
	for _, step := range []func(*rapid.T){
		w.submitStep, w.submitStep, w.lose, w.submitStep, w.holdOverStart, w.cancelGated,
	} {
		step(t)
		w.checkAll()
	}
}

// holdRecent holds one of the newest jobs by hand, or lets it go.
func (w *workflows) holdRecent(t *rapid.T, hold bool) {
	if n := len(w.gated); n > 0 {
		w.hold(t, w.gated[n-1-rapid.IntRange(0, min(n-1, 3)).Draw(t, "job")], hold)
	}
}

// holdOverStart holds one by hand, has the broker die and start again, and looks what begins.
func (w *workflows) holdOverStart(t *rapid.T) {
	w.holdRecent(t, true)
	w.settleStill()
	w.noteStill()
	w.die(t)
	w.settle()
}

// submitStep submits a job that waits for up to three others, as a whole or task by task, and may be gated.
func (w *workflows) submitStep(t *rapid.T) {
	l := &gatedLink{count: rapid.IntRange(1, 2).Draw(t, "count"), parallel: rapid.IntRange(0, 2).Draw(t, "parallel")}
	waits := ""
	if len(w.gated) > 0 && rapid.Bool().Draw(t, "each") {
		l.each = rapid.SampledFrom(w.gated).Draw(t, "each of")
		l.count = l.each.count
		waits = fmt.Sprintf(`,{"job":%q,"when":"each"}`, l.each.id)
	}
	fields := fmt.Sprintf(`"count":%d`, l.count)
	if l.parallel > 0 {
		fields += fmt.Sprintf(`,"parallel":%d`, l.parallel)
	}
	if l.backoff = rapid.Bool().Draw(t, "backoff"); l.backoff {
		fields += `,"retry":{"max_attempts":3,"backoff":"1s","not_on":["2"]}`
	}
	for range min(rapid.IntRange(0, 2).Draw(t, "after"), len(w.gated)) {
		on := rapid.SampledFrom(w.gated).Draw(t, "on")
		whens := []jobspec.When{jobspec.WhenOK, jobspec.WhenAny, jobspec.WhenOK, jobspec.WhenNotOK}
		d := jobspec.Dependency{Job: on.id, When: rapid.SampledFrom(whens).Draw(t, "when")}
		if slices.ContainsFunc(l.after, func(x jobspec.Dependency) bool { return x.Job == d.Job }) || l.each == on {
			continue
		}
		l.after = append(l.after, d)
		waits += fmt.Sprintf(`,{"job":%q,"when":%q}`, d.Job, d.When)
	}
	if waits != "" {
		fields += `,"after":[` + waits[1:] + `]`
	}
	if rapid.Bool().Draw(t, "elsewhere") {
		fields += `,"sites":{"only":["b"]}`
	}
	w.submitLink(t, l, fields)
}

// lose has a site's machine lose all that it runs; its broker begins again.
func (w *workflows) lose(t *rapid.T) {
	s := rapid.SampledFrom(w.sites).Draw(t, "at")
	for id := range s.running {
		w.lost[id.Job]++
	}
	clear(s.running)
	s.boot()
}

// settleStill has all happen that is under way, and notes of which jobs nothing may begin from then on. What has begun
// meanwhile is counted before: a task may have been assigned when its job was held.
func (w *workflows) settleStill() {
	w.settle()
	w.checkAll()
	w.markStill()
}

// markStill notes of which jobs nothing may begin now, as long as they are held by hand: nothing is under way.
func (w *workflows) markStill() {
	for _, l := range w.gated {
		counts, _ := w.state.TaskCounts(l.id) // of one that is not there yet all tasks are held when it comes
		l.still = l.held && counts[fsm.Queued]+counts[fsm.Assigned] == 0
	}
}

// checkAll looks at what runs, at what has begun since the last time, and how often.
func (w *workflows) checkAll() {
	w.checkGates()
	for _, l := range w.gated {
		starts := w.startsOf(l.id)
		if starts > l.starts && l.still {
			w.t.Fatalf("job %s has begun, and is held by hand", l.id)
		}
		if starts > l.starts {
			for _, d := range l.after {
				if state, _ := w.a.sees(d.Job); !allowed(d.When, state) {
					w.t.Fatalf("job %s has begun, and waited for %s, %s: that is %s", l.id, d.Job, d.When, state)
				}
			}
		}
		l.starts = starts
		most := l.count + w.lost[l.id.String()]
		if l.backoff {
			most += 2 * l.count
		}
		if starts > most {
			w.t.Fatalf("job %s of %d tasks was started %d times, %d were lost", l.id, l.count, starts, w.lost[l.id.String()])
		}
	}
}

func (w *workflows) startsOf(id command.JobID) (n int) {
	for _, s := range w.sites {
		for _, at := range s.history {
			if at.Job == id.String() {
				n++
			}
		}
	}
	return n
}

// checkWorkflows compares all ends with the model, and counts what there was.
func (w *workflows) checkWorkflows() {
	for _, l := range w.gated {
		inVain := slices.ContainsFunc(l.after, func(d jobspec.Dependency) bool {
			on, _ := w.a.sees(d.Job)
			return !allowed(d.When, on)
		})
		state, reason := w.a.sees(l.id)
		if inVain && (state != "cancelled" || l.starts > 0 || reason == "") {
			w.t.Fatalf("job %s waits in vain, and is %s after %d starts: %q", l.id, state, l.starts, reason)
		}
		for task := range uint32(l.count) {
			w.checkTask(l, task, inVain)
		}
		w.count(l, inVain)
	}
	if n := w.a.core.after.Held(); n > 0 {
		w.t.Fatalf("%d jobs are held in the end", n)
	}
}

// checkTask compares how a task has ended with what it waited for.
func (w *workflows) checkTask(l *gatedLink, task uint32, inVain bool) {
	state := w.stateOf(l.id, task)
	due := !inVain && (l.each == nil || w.stateOf(l.each.id, task) == fsm.TaskSucceeded)
	switch {
	case !state.Ended():
		w.t.Fatalf("task %s/%d is %s in the end", l.id, task, state)
	case due && !l.asked && state == fsm.TaskCancelled:
		w.t.Fatalf("task %s/%d is cancelled, and nobody has asked for it", l.id, task)
	case !due && state != fsm.TaskCancelled:
		w.t.Fatalf("task %s/%d is %s, and waited in vain", l.id, task, state)
	}
}

// count notes what there was, so that the test shows that it was there.
func (w *workflows) count(l *gatedLink, inVain bool) {
	for what, is := range map[string]bool{
		"after": len(l.after) > 0, "after and parallel": len(l.after) > 0 && l.parallel > 0 && l.starts > 0,
		"each of what is gated": l.each != nil && l.each.backoff && l.starts > 0,
		"lost":                  w.lost[l.id.String()] > 0, "in vain": inVain, "cancelled": l.asked,
	} {
		if is {
			w.seen[what]++
		}
	}
}

// noteStill counts jobs that the broker must not let go when it starts again.
func (w *workflows) noteStill() {
	for _, l := range w.gated {
		if counts, _ := w.state.TaskCounts(l.id); l.still && counts[fsm.Held] > 0 {
			w.seen["held by hand over a start"]++
		}
	}
}
