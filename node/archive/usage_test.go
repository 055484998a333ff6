package archive

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// TestUsageIsOfOneJob: what a job's attempts used beside what they took; those of which nothing is known do not make
// it look idle, and those that never ran count as ended only.
func TestUsageIsOfOneJob(t *testing.T) {
	a := openTest(t, t.TempDir(), &clock{epoch}, nil)
	job := command.JobID{Site: "a", Num: 3}
	attempt := func(n uint32, num uint64, m command.Measured) Attempt {
		x := ended(uint64(n), time.Duration(n)*time.Second)
		x.Job, x.Task, x.Count, x.Number, x.Final = command.JobID{Site: "a", Num: num}, n, 1, 1, true
		x.Need, x.ChargedMs = command.Resources{MilliCPU: 2000, MemMiB: 100}, 1000
		x.Started, x.Measured = x.Ended.Add(-time.Second), m
		return x
	}
	idle := attempt(4, 3, command.Measured{})
	idle.Started, idle.ChargedMs = time.Time{}, 0
	const cgroup, rusage = command.MeasuredCgroup, command.MeasuredRusage
	list := []Attempt{
		attempt(1, 3, command.Measured{PeakBytes: 30 << 20, UserMs: 900, SystemMs: 100, Source: cgroup}),
		attempt(2, 3, command.Measured{PeakBytes: 50 << 20, UserMs: 400, SystemMs: 100, Source: rusage}),
		attempt(3, 3, command.Measured{}), idle, attempt(5, 4, command.Measured{PeakBytes: 1 << 40, UserMs: 1 << 40}),
	}
	if err := a.Append(list, node.EventID{Entry: 9}); err != nil {
		t.Fatal(err)
	}
	u, err := a.Usage(t.Context(), Query{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	if u.Attempts != 3 || u.Tasks != 4 || u.CoreMs != 3*2000*1000 || u.TimedCoreMs != 2*2000*1000 {
		t.Errorf("%+v", u)
	}
	if u.UserMs != 1300 || u.SystemMs != 200 || u.PeakBytes != 50<<20 || u.MeanPeak != 40<<20 || u.MemMiB != 100 {
		t.Errorf("%+v", u)
	}
	if s := u.Sources; s[cgroup] != 1 || s[rusage] != 1 || s[command.MeasuredUnknown] != 1 {
		t.Errorf("%v", s)
	}
	none, err := a.Usage(t.Context(), Query{Job: command.JobID{Site: "a", Num: 99}})
	if err != nil || none.Attempts != 0 || none.MeanPeak != 0 {
		t.Errorf("of a job that nobody knows: %+v, %v", none, err)
	}
}
