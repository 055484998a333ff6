package attempts

import (
	"math"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestMeasuredOf: what is reported is what the handler measured, by the less exact of its sources, and within bounds.
func TestMeasuredOf(t *testing.T) {
	const cgroup, rusage, unknown = executor.UsageCgroup, executor.UsageRusage, executor.UsageUnknown
	for _, c := range []struct {
		name string
		u    executor.Usage
		want command.Measured
	}{
		{"nothing", executor.Usage{}, command.Measured{}},
		{
			"a cgroup's",
			executor.Usage{
				PeakMemory: 5, User: 2 * time.Second, System: time.Second, MemoryFrom: cgroup, TimeFrom: cgroup,
			},
			command.Measured{PeakBytes: 5, UserMs: 2000, SystemMs: 1000, Source: command.MeasuredCgroup},
		},
		{
			"time of a cgroup, memory of processes",
			executor.Usage{PeakMemory: 5, User: time.Second, MemoryFrom: rusage, TimeFrom: cgroup},
			command.Measured{PeakBytes: 5, UserMs: 1000, Source: command.MeasuredRusage},
		},
		{
			"no memory",
			executor.Usage{PeakMemory: 5, User: time.Second, MemoryFrom: unknown, TimeFrom: rusage},
			command.Measured{UserMs: 1000, Source: command.MeasuredRusage},
		},
		{
			"no time",
			executor.Usage{PeakMemory: 5, User: time.Second, MemoryFrom: cgroup},
			command.Measured{PeakBytes: 5, Source: command.MeasuredCgroup},
		},
		{
			"more than there is",
			executor.Usage{
				PeakMemory: math.MaxInt64, User: math.MaxInt64, System: -1, MemoryFrom: cgroup, TimeFrom: cgroup,
			},
			command.Measured{
				PeakBytes: command.MaxPeakBytes, Source: command.MeasuredCgroup,
				UserMs: min(command.MaxProcessorMs, math.MaxInt64/int64(time.Millisecond)),
			},
		},
	} {
		if got := MeasuredOf(c.u); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
