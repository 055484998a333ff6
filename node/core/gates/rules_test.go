package gates

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

var job = command.JobID{Site: "a", Num: 7}

func elements(parts ...any) (e Elements) {
	for i := 0; i < len(parts); i += 2 {
		e.Add(uint32(parts[i].(int)), parts[i+1].(Standing))
	}
	return e
}

func codes(t *testing.T, list string) jobspec.ExitCodes {
	t.Helper()
	s, err := jobspec.ParseSpec([]byte(`{"command":["a"],"retry":{"max_attempts":2,"only_on":` + list + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return s.Retry.OnlyOn
}

// TestDecisions goes through the rules one by one.
func TestDecisions(t *testing.T) {
	fresh := []Run{{First: 0, Count: 10}}
	failed := []Run{{First: 3, Count: 1, Attempt: 2, Failures: 1, Failed: true, ExitCode: 3, SinceMs: 100}}
	killed := []Run{{First: 3, Count: 1, Attempt: 1, Failures: 1, Failed: true, Signal: 9}}
	lost := []Run{{First: 3, Count: 1, Attempt: 2, Failures: 1, SinceMs: 100, ExitCode: 3}}
	one := Span{3, 1, 2}
	backoff := jobspec.SpecRetry{MaxAttempts: 3, Backoff: time.Second, BackoffMax: time.Minute}
	pause := (&Rules{Job: job, Retry: backoff}).PauseMs(3, 1)
	for _, c := range []struct {
		name string
		r    Rules
		v    View
		held []Run
		now  int64
		want Decision
	}{
		{name: "no rule", held: fresh, want: Decision{Release: []Span{{0, 10, 0}}}},
		{
			name: "by hand", v: View{Hold: true}, held: append(slices.Clone(fresh), failed...),
			want: Decision{Waiting: Waiting{ByHand: 11}},
		},
		{
			name: "parallel", r: Rules{Parallel: 4}, v: View{Open: 3}, held: fresh,
			want: Decision{Release: []Span{{0, 1, 0}}, Waiting: Waiting{Parallel: 9}},
		},
		{
			name: "more run than may", r: Rules{Parallel: 4}, v: View{Open: 5}, held: fresh,
			want: Decision{Waiting: Waiting{Parallel: 10}},
		},
		{name: "at once", held: failed, want: Decision{Release: []Span{one}}},
		{
			name: "in its pause", r: Rules{Retry: backoff}, held: failed, now: 100 + pause - 1,
			want: Decision{NextMs: 100 + pause, Waiting: Waiting{Backoff: 1}},
		},
		{
			name: "after its pause", r: Rules{Retry: backoff}, held: failed, now: 100 + pause,
			want: Decision{Release: []Span{one}},
		},
		{name: "lost, no pause", r: Rules{Retry: backoff}, held: lost, now: 100, want: Decision{Release: []Span{one}}},
		{
			name: "not on this code", r: Rules{Retry: jobspec.SpecRetry{NotOn: codes(t, `["2-4"]`)}}, held: failed,
			v:    View{Hold: true},
			want: Decision{End: []End{{one, true, "exit 3, after which it is not tried again (retry.not_on)"}}},
		},
		{
			name: "a loss has no code", r: Rules{Retry: jobspec.SpecRetry{NotOn: codes(t, `["2-4"]`)}}, held: lost,
			want: Decision{Release: []Span{one}},
		},
		{
			name: "on this code", r: Rules{Retry: jobspec.SpecRetry{OnlyOn: codes(t, `[3]`)}}, held: failed,
			want: Decision{Release: []Span{one}},
		},
		{
			name: "on others only", r: Rules{Retry: jobspec.SpecRetry{OnlyOn: codes(t, `["4-255"]`)}}, held: failed,
			want: Decision{End: []End{{one, true, "exit 3, after which it is not tried again (retry.only_on has others)"}}},
		},
		{
			name: "a signal is 128 more", r: Rules{Retry: jobspec.SpecRetry{NotOn: codes(t, `["137"]`)}}, held: killed,
			want: Decision{End: []End{{Span{3, 1, 1}, true, "exit 137, after which it is not tried again (retry.not_on)"}}},
		},
		{
			name: "each", r: Rules{Each: []command.JobID{{Site: "a", Num: 1}, {Site: "a", Num: 2}}}, held: fresh,
			v: View{Each: []Elements{elements(4, OK, 1, Never, 5, OK), elements(2, OK, 2, Pending, 6, OK)}},
			want: Decision{
				Release: []Span{{0, 2, 0}, {5, 5, 0}},
				End:     []End{{Span{4, 1, 0}, false, "waited for the task at its place of job a.1, which did not succeed"}},
				Waiting: Waiting{Each: 2},
			},
		},
		{
			name: "each of a job forgotten", r: Rules{Each: []command.JobID{{Site: "a", Num: 1}}}, held: fresh,
			v: View{Each: []Elements{{Unknown: true}}},
			want: Decision{End: []End{{
				Span{0, 10, 0},
				false,
				"waited for job a.1 task by task, which is no longer kept, and how it ended is not known",
			}}},
		},
	} {
		c.r.Job, c.v.Held = job, slices.Values(c.held)
		if got := c.r.Decide(c.v, c.now, 100); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, c.want)
		}
	}
}

// TestPauses: they double, are bounded, differ from task to task, and are the same whenever they are asked for.
func TestPauses(t *testing.T) {
	r := Rules{Job: job, Retry: jobspec.SpecRetry{Backoff: time.Second, BackoffMax: 10 * time.Second}}
	seen := map[int64]bool{}
	for task := range uint32(1000) {
		for failures, base := range []int64{1: 1000, 2: 2000, 3: 4000, 4: 8000, 5: 10_000, 1000: 10_000} {
			if base == 0 {
				continue
			}
			ms := r.PauseMs(task, uint32(failures))
			if ms <= base*3/4-1 || ms > base || ms != r.PauseMs(task, uint32(failures)) {
				t.Fatalf("task %d, failure %d: %d ms of %d", task, failures, ms, base)
			}
			seen[ms] = true
		}
	}
	if len(seen) < 1000 {
		t.Errorf("only %d different pauses", len(seen))
	}
	longest := Rules{Job: job, Retry: jobspec.SpecRetry{Backoff: jobspec.MaxBackoff, BackoffMax: jobspec.MaxBackoff}}
	most := jobspec.MaxBackoff.Milliseconds()
	if ms := longest.PauseMs(0, 1<<31); ms > most || ms < most/2 {
		t.Errorf("the longest is %d ms", ms)
	}
}

// TestDecisionsAreWholeAndBounded: each held task is released, ended or counted as waiting, once; nothing is released
// beyond parallel; in parts comes out what comes out at once.
func TestDecisionsAreWholeAndBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rules{
			Job: job, Parallel: rapid.Uint32Range(0, 5).Draw(t, "parallel"),
			Retry: jobspec.SpecRetry{
				NotOn: jobspec.ExitCodes{{First: 2, Last: 3}}, Backoff: time.Second, BackoffMax: 4 * time.Second,
			},
		}
		v := View{Open: rapid.Uint32Range(0, 6).Draw(t, "open"), Hold: rapid.Bool().Draw(t, "hold")}
		for i := range rapid.IntRange(0, 2).Draw(t, "each") {
			r.Each = append(r.Each, command.JobID{Site: "a", Num: uint64(i + 1)})
			var e Elements
			for range rapid.IntRange(0, 6).Draw(t, "runs") {
				e.Add(rapid.Uint32Range(1, 8).Draw(t, "n"), Standing(rapid.IntRange(0, 2).Draw(t, "standing")))
			}
			v.Each = append(v.Each, e)
		}
		held, all := drawHeld(t)
		v.Held = slices.Values(held)
		d := r.Decide(v, rapid.Int64Range(0, 9000).Draw(t, "now"), 1<<20)
		seen := map[uint32]bool{}
		released := count(t, d.Release, seen)
		var ends []Span
		for _, e := range d.End {
			ends = append(ends, e.Span)
		}
		if n := released + count(t, ends, seen) + d.Waiting.All(); n != all || d.More {
			t.Fatalf("%d of %d tasks are judged: %+v", n, all, d)
		}
		if r.Parallel > 0 && released > 0 && v.Open+released > r.Parallel {
			t.Fatalf("%d run and %d begin, of %d", v.Open, released, r.Parallel)
		}
		if v.Hold && released > 0 || d.Waiting.Backoff > 0 && d.NextMs == 0 {
			t.Fatalf("%+v", d)
		}
		if part := r.Decide(v, 0, 1); len(part.Release)+len(part.End) > 1 {
			t.Fatalf("more than one: %+v", part)
		}
	})
}

// drawHeld draws runs of tasks, and returns how many tasks these are.
func drawHeld(t *rapid.T) (held []Run, all uint32) {
	at := uint32(0)
	for range rapid.IntRange(0, 8).Draw(t, "held") {
		at += rapid.Uint32Range(0, 3).Draw(t, "gap")
		run := Run{First: at, Count: rapid.Uint32Range(1, 5).Draw(t, "count")}
		if rapid.Bool().Draw(t, "ran") {
			run.Count, run.Attempt, run.Failures, run.Failed = 1, 2, 1, rapid.Bool().Draw(t, "failed")
			run.ExitCode, run.SinceMs = rapid.Int32Range(0, 4).Draw(t, "exit"), rapid.Int64Range(0, 9000).Draw(t, "since")
		}
		held, at, all = append(held, run), at+run.Count, all+run.Count
	}
	return held, all
}

func count(t *rapid.T, spans []Span, seen map[uint32]bool) (n uint32) {
	for _, s := range spans {
		for i := range s.Count {
			if seen[s.First+i] {
				t.Fatalf("task %d twice", s.First+i)
			}
			seen[s.First+i] = true
		}
		n += s.Count
	}
	return n
}

// TestElementsAreKept: a record says what it was made of; nonsense is refused.
func TestElementsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e Elements
		for range rapid.IntRange(0, 6).Draw(t, "runs") {
			e.Add(rapid.Uint32Range(1, 1000).Draw(t, "n"), Standing(rapid.IntRange(0, 2).Draw(t, "standing")))
		}
		if len(e.runs) == 0 || slices.ContainsFunc(e.runs, func(r element) bool { return r.standing == Pending }) {
			e.Forget()
		}
		back, err := DecodeElements(e.Encode())
		if err != nil || !reflect.DeepEqual(back, e) {
			t.Fatalf("%+v, %v, want %+v", back, err, e)
		}
		DecodeElements(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) //nolint:errcheck // it only must not panic
	})
	if _, err := DecodeElements([]byte{0xff}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	over := elements(3, OK, 1, Never)
	if !over.Over(4) || over.Over(5) || (&Elements{}).Over(1) {
		t.Error("over?")
	}
}

// BenchmarkDecide is a look at a job of a million tasks, of which ten thousand have failed and wait.
func BenchmarkDecide(b *testing.B) {
	r := Rules{Job: job, Retry: jobspec.SpecRetry{Backoff: time.Minute, BackoffMax: time.Hour}}
	var held []Run
	for i := range uint32(10_000) {
		held = append(held, Run{First: i * 100, Count: 1, Attempt: 1, Failures: 1, Failed: true, SinceMs: 1})
	}
	for b.Loop() {
		if d := r.Decide(View{Held: slices.Values(held)}, 2, 1000); d.Waiting.Backoff != 10_000 {
			b.Fatal(d.Waiting)
		}
	}
}

// TestTimeoutsAreNamed: a task that is not tried again after its timeout says so, since its exit code alone is that of
// a signal which its user never sent.
func TestTimeoutsAreNamed(t *testing.T) {
	r := Rules{Job: job, Retry: jobspec.SpecRetry{MaxAttempts: 3, OnlyOn: codes(t, `["75"]`)}}
	run := Run{First: 1, Count: 1, Attempt: 1, Failures: 1, Failed: true, TimedOut: true, Signal: 15}
	d := r.Decide(View{Held: slices.Values([]Run{run})}, 0, 10)
	const want = "exit 143 at its timeout, after which it is not tried again (retry.only_on has others)"
	if len(d.End) != 1 || d.End[0].Reason != want {
		t.Errorf("%+v, want %s", d.End, want)
	}
}
