package watchdog

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/executor"
)

// runPlan steps through a plan as a supervisor does, on a clock of its own: it
// wakes when told to, or earlier. It returns when TERM and KILL came.
func runPlan(
	p *plan, until int64, shared func(now int64) int64, stopAt int64, early func() int64,
) (termed, killed int64) {
	termed, killed = Never, Never
	for now := int64(1); now < until; {
		act, wake := p.step(now, shared(now), now >= stopAt)
		switch act {
		case term:
			termed = now
		case kill:
			return min(termed, now), now
		case rest:
		}
		next := min(wake, stopAt)
		if now >= stopAt {
			next = wake
		}
		now = max(now+1, next-early())
	}
	return termed, killed
}

func TestPlanKillsBeforeTheFence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grace := rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "grace")
		fence := rapid.Int64Range(killMargin+grace+2, int64(time.Minute)).Draw(t, "fence")
		timeout := rapid.Int64Range(0, int64(time.Minute)).Draw(t, "timeout")
		stopAt := rapid.Int64Range(1, int64(2*time.Minute)).Draw(t, "stopAt")
		moved := rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "moved")
		movedAt := rapid.Int64Range(1, int64(time.Minute)).Draw(t, "movedAt")
		jitter := rapid.Int64Range(0, int64(time.Second))
		p := &plan{Fence: fence, Timeout: timeout, Grace: grace}
		shared := func(now int64) int64 {
			if now >= movedAt {
				return moved
			}
			return 0
		}
		if p.tooLate(1, 0) {
			return
		}
		termed, killed := runPlan(p, Never, shared, stopAt, func() int64 { return jitter.Draw(t, "early") })
		last := max(fence, moved) - killMargin
		if killed > last {
			t.Fatalf("killed at %d, must be by %d", killed, last)
		}
		if killed-termed > grace {
			t.Fatalf("TERM at %d, KILL at %d: more than the grace of %d between", termed, killed, grace)
		}
		first := min(stopAt, fence-killMargin-grace)
		if timeout != 0 {
			first = min(first, timeout)
		}
		if termed < first {
			t.Fatalf("TERM at %d, nothing was due before %d", termed, first)
		}
	})
}

func TestPlanCauses(t *testing.T) {
	for name, c := range map[string]struct {
		plan   plan
		stopAt int64
		cause  executor.Cause
		termed int64
		killed int64
	}{
		"timeout":              {plan{Timeout: 100, Grace: 10}, Never, executor.TimedOut, 100, 110},
		"stop":                 {plan{Grace: 10}, 50, executor.Stopped, 50, 60},
		"fence":                {plan{Fence: killMargin + 1000, Grace: 10}, Never, executor.Fenced, 990, 1000},
		"stop just before it":  {plan{Fence: killMargin + 1000, Grace: 500}, 499, executor.Stopped, 499, 999},
		"timeout, short lease": {plan{Fence: killMargin + 1000, Timeout: 400, Grace: 800}, Never, executor.Fenced, 200, 1000},
		"no grace":             {plan{Timeout: 100}, Never, executor.TimedOut, 100, 100},
	} {
		p := c.plan
		termed, killed := runPlan(&p, 1e15, func(int64) int64 { return 0 }, c.stopAt, func() int64 { return 0 })
		if p.Cause != c.cause || termed != c.termed || killed != c.killed {
			t.Errorf("%s: cause %d, TERM %d, KILL %d; want %d, %d, %d", name, p.Cause, termed, killed, c.cause, c.termed, c.killed)
		}
	}
}

func TestPlanWithoutLimitsNeverEnds(t *testing.T) {
	p := &plan{Grace: 10}
	if act, wake := p.step(1<<60, 1, false); act != rest || wake != Never {
		t.Errorf("got action %d, wake %d; want none ever: a shared fence is not for own work", act, wake)
	}
}
