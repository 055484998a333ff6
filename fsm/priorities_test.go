package fsm

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// prioritised makes one site's jobs wait, each with its own priority.
func prioritised(tb tb, n int, sites ...string) *world {
	w := newWorld(tb, params(), sites...)
	for at := 0; at < n; {
		jobs := make([]command.JobSpec, min(n-at, command.MaxJobsPerSubmit))
		for i := range jobs {
			jobs[i] = w.job(sites[0], 1)
			jobs[i].Priority = int32(at)
			at++
		}
		w.submit(sites[0], jobs...)
	}
	return w
}

// least is the shortest of three times: what else the machine does, and the collector, only add to one.
func least(each func(jobs int) time.Duration, jobs int) time.Duration {
	return min(each(jobs), each(jobs), each(jobs))
}

// TestPrioritiesCostNothingEach: each assignment of a job with its own priority used to examine all other
// priorities in its lane. 100,000 such jobs took seconds an entry.
func TestPrioritiesCostNothingEach(t *testing.T) {
	const tasks = 500
	each := func(jobs int) time.Duration {
		w := prioritised(t, jobs, "a", "b")
		o := w.cmd("b", w.offering("b", tasks))
		began := processorTime()
		w.apply(o)
		took := processorTime() - began
		if got := len(w.s.Assignments("b")); got != tasks {
			t.Fatalf("%d of %d jobs were assigned", got, tasks)
		}
		return took
	}
	few, many := least(each, 2*tasks), least(each, 80*tasks)
	if many > 5*few+5*time.Millisecond {
		t.Errorf("500 assignments take %v among %d priorities, %v among %d", many, 80*tasks, few, 2*tasks)
	}
}

// TestDeclinedPrioritiesArePassedOnce: a site that declined all of many priorities used to pass all of them
// for each of its machines, whenever one was drawn.
func TestDeclinedPrioritiesArePassedOnce(t *testing.T) {
	const machines = 300
	each := func(jobs int) time.Duration {
		w := prioritised(t, jobs, "a", "b")
		cores := make([]int64, machines)
		for i := range cores {
			cores[i] = int64(jobs/machines) + 1
		}
		w.must("b", w.offering("b", cores...))
		w.declineAll("b")
		big := w.job("a", 1)
		big.Need.MilliCPU = cores[0] * 1000
		for _, m := range w.s.byName["b"].machines {
			w.s.wakeMachine(m)
		}
		o := w.cmd("a", &command.Submit{Jobs: []command.JobSpec{big}})
		began := processorTime()
		w.apply(o)
		return processorTime() - began
	}
	few, many := least(each, machines), least(each, 20*machines)
	if many > 5*few+20*time.Millisecond {
		t.Errorf("%d machines look at %d declined priorities in %v, at %d in %v", machines, 20*machines, many, machines, few)
	}
}
