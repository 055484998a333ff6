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
		attempt(1, 3, command.Measured{
			PeakBytes: 30 << 20, UserMs: 900, SystemMs: 100, InBytes: 7, OutBytes: 1 << 40, Source: cgroup,
		}),
		attempt(2, 3, command.Measured{PeakBytes: 50 << 20, UserMs: 400, SystemMs: 100, Source: rusage}),
		attempt(3, 3, command.Measured{InBytes: 5}), idle,
		attempt(5, 4, command.Measured{PeakBytes: 1 << 40, UserMs: 1 << 40}),
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
	if u.UserMs != 1300 || u.SystemMs != 200 || u.PeakBytes != 50<<20 || u.MeanPeak() != 40<<20 || u.MemMiB != 100 {
		t.Errorf("%+v", u)
	}
	if u.InBytes != 12 || u.OutBytes != 1<<40 {
		t.Errorf("%d bytes in, %d out", u.InBytes, u.OutBytes)
	}
	if s := u.Sources; s[cgroup] != 1 || s[rusage] != 1 || s[command.MeasuredUnknown] != 1 {
		t.Errorf("%v", s)
	}
	none, err := a.Usage(t.Context(), Query{Job: command.JobID{Site: "a", Num: 99}})
	if err != nil || none.Attempts != 0 || none.MeanPeak() != 0 {
		t.Errorf("of a job that nobody knows: %+v, %v", none, err)
	}
}

// TestReportSaysWhatWasUsed: a row has what its site's tasks and those that it ran have used; what of an attempt is not
// known does not make the others look idle, and one that was not bounded has no part of what it asked for.
func TestReportSaysWhatWasUsed(t *testing.T) {
	a := openTest(t, t.TempDir(), &clock{epoch}, nil)
	attempt := func(n uint64, owner, site string, mem int64, m command.Measured) Attempt {
		x := ended(n, time.Duration(n)*time.Second)
		x.Job.Site, x.Site, x.Need.MemMiB, x.ChargedMs, x.Measured = owner, site, mem, 1000, m
		return x
	}
	waiting := attempt(5, "a", "b", 100, command.Measured{InBytes: 1 << 50})
	waiting.Started = time.Time{}
	if err := a.Append([]Attempt{
		attempt(1, "a", "a", 100, command.Measured{PeakBytes: 30 << 20, UserMs: 900, SystemMs: 100, InBytes: 1}),
		attempt(2, "a", "b", 300, command.Measured{PeakBytes: 90 << 20, OutBytes: 20}),
		attempt(3, "b", "a", 0, command.Measured{PeakBytes: 200 << 20, UserMs: 500, InBytes: 300}),
		attempt(4, "a", "a", 50, command.Measured{}), waiting,
	}, node.EventID{Entry: 9}); err != nil {
		t.Fatal(err)
	}
	r, err := a.Report(t.Context(), Query{}, "site")
	if err != nil {
		t.Fatal(err)
	}
	check := func(row *Row, cpu, memory float64, peak, in, out int64) {
		t.Helper()
		u := &row.Measured
		gotCPU, timed := u.CPUShare()
		gotMemory, bounded := u.MemoryShare()
		if gotCPU != cpu || timed != (cpu > 0) || gotMemory != memory || bounded != (memory > 0) ||
			u.PeakBytes != peak<<20 || u.InBytes != in || u.OutBytes != out {
			t.Errorf("%s: cpu %v, memory %v, %+v", row.Key, gotCPU, gotMemory, u)
		}
	}
	check(&r.Rows[0], 1500./4000, 120./400, 200, 301, 20)
	check(&r.Rows[1], 500./2000, 90./300, 200, 300, 20)
	check(&r.Total, 1500./4000, 120./400, 200, 301, 20)
}
