package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// TestHomeRunsBeforeLogTimeAreCharged: log time does not move while there is no leader, so a run that is
// reported late in a young federation may have begun before its time 0. It used to be charged nothing, or a
// part: chaos runs on a starved machine found half of what had run.
func TestHomeRunsBeforeLogTimeAreCharged(t *testing.T) {
	for _, tc := range []struct{ agoMs, runMs, want int64 }{
		{0, 5_000, 5_000},
		{2_000, 9_000, 9_000},  // began before 0
		{60_000, 5_000, 5_000}, // ended before 0
		{0, 60_000, 10_000},    // longer than log time is old: nobody can have used more
	} {
		w := newWorld(t, params(), "a", "b")
		w.at(10_000)
		w.must("a", &command.Usage{
			Batch: 1,
			Rows: []command.UsageRow{{
				Job: 1, Need: command.Resources{MilliCPU: 1000}, AgoMs: tc.agoMs, RunMs: tc.runMs,
			}},
		})
		if got, want := w.s.byName["a"].account.Used.A, sched.Mul64(1000, tc.want); got != want {
			t.Errorf("%d ms, %d ms ago: charged %s, want %s", tc.runMs, tc.agoMs, got, want)
		}
		w.check()
	}
}
