package archive

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/sim/swf"
)

// MaxSorted bounds the tasks of an SWF export, which are held in memory.
const MaxSorted = 500_000

// work is one task as SWF wants it, small.
type work struct {
	submit, wait, run int64 // ms; submit since 1970, the others −1 = unknown
	procs, mem        int64
	owner, executor   int32 // from 1; −1 = none
	status            int8
}

// roll numbers sites in the order of their names' first appearance.
type roll struct {
	numbers map[string]int32
	names   []string
}

func (r *roll) number(name string) int32 {
	if name == "" {
		return swf.Unknown
	}
	n, ok := r.numbers[name]
	if !ok {
		r.names = append(r.names, name)
		n = int32(len(r.names))
		r.numbers[name] = n
	}
	return n
}

// exportSWF writes the tasks that ended: a task that had several attempts is one
// line, of its last one, since the format knows one run of a job.
func (a *Archive) exportSWF(ctx context.Context, q Query, w io.Writer) error {
	var list []work
	sites := roll{numbers: map[string]int32{}}
	gaps, err := a.Scan(ctx, q, func(t *Attempt) error {
		if !t.Final {
			return nil
		}
		if len(list)+int(t.Count) > MaxSorted {
			return fmt.Errorf("%w: at most %d", ErrTooMany, MaxSorted)
		}
		x := workOf(t, &sites)
		for range t.Count {
			list = append(list, x)
		}
		return nil
	})
	if err != nil {
		return exported(err)
	}
	slices.SortStableFunc(list, func(x, y work) int { return cmp.Compare(x.submit, y.submit) })
	start := int64(0)
	if len(list) > 0 {
		start = list[0].submit
	}
	out := swf.NewWriter(w, a.swfHeader(start, list, &sites, gaps)...)
	for i := range list {
		j := list[i].job(int64(i)+1, start)
		if err := out.Write(&j); err != nil {
			return exported(err)
		}
	}
	return exported(out.Flush())
}

func workOf(t *Attempt, sites *roll) work {
	submitted := t.Submitted
	if submitted.IsZero() {
		submitted = t.Queued
	}
	if submitted.IsZero() {
		submitted = t.Ended
	}
	x := work{
		submit: submitted.UnixMilli(), wait: swf.Unknown, run: swf.Unknown, procs: (t.Need.MilliCPU + 999) / 1000,
		mem:   t.Need.MemMiB,
		owner: sites.number(t.Owner()), executor: sites.number(t.Site), status: statusOf(t.Outcome),
	}
	if t.Ran() {
		x.wait, x.run = max(0, t.Started.Sub(submitted).Milliseconds()), t.Run().Milliseconds()
	}
	return x
}

// statusOf returns the format's: 1 completed, 0 failed, 5 cancelled.
func statusOf(e fsm.Ending) int8 {
	switch e {
	case fsm.EndSucceeded:
		return 1
	case fsm.EndCancelled:
		return 5
	case fsm.NoEnding:
		return swf.Unknown
	default:
		return 0
	}
}

// job returns a line. The format has whole seconds.
func (x *work) job(number, start int64) swf.Job {
	j := swf.Job{
		Number: number, Submit: seconds(x.submit - start), Wait: seconds(x.wait), Run: seconds(x.run),
		Procs: x.procs, CPU: swf.Unknown, Memory: swf.Unknown, ReqProcs: x.procs, ReqTime: swf.Unknown,
		ReqMemory: swf.Unknown,
		Status:    int64(x.status), User: int64(x.owner), Group: int64(x.owner), Executable: swf.Unknown,
		Queue:     swf.Unknown,
		Partition: int64(x.executor), Preceding: swf.Unknown, ThinkSeconds: swf.Unknown,
	}
	if x.mem > 0 && x.procs > 0 {
		j.ReqMemory = float64(x.mem * 1024 / x.procs)
	}
	if x.executor == swf.Unknown {
		j.Procs = swf.Unknown
	}
	return j
}

func seconds(ms int64) float64 {
	if ms < 0 {
		return swf.Unknown
	}
	return float64((ms + 500) / 1000)
}

func (a *Archive) swfHeader(start int64, list []work, sites *roll, gaps []Gap) []string {
	most := int64(0)
	for i := range list {
		most = max(most, list[i].procs)
	}
	begin := time.UnixMilli(start).UTC()
	out := []string{
		"Version: 2.2", "Computer: CloudShare federation, seen by " + a.cfg.Site,
		fmt.Sprintf("MaxJobs: %d", len(list)), fmt.Sprintf("MaxRecords: %d", len(list)),
		fmt.Sprintf("UnixStartTime: %d", start/1000), "TimeZoneString: UTC", "StartTime: " + begin.Format("Mon Jan _2 15:04:05 MST 2006"),
		fmt.Sprintf("Note: one line a task that ended, of its last attempt; user and group are its owner, partition its executor; archive.scope %s", a.cfg.Scope),
		fmt.Sprintf("Note: the widest task has %d processors", most),
	}
	for i, name := range sites.names {
		out = append(out, fmt.Sprintf("Note: site %d is %s", i+1, name))
	}
	for i := range gaps {
		g := &gaps[i]
		out = append(out, fmt.Sprintf("Note: gap until %s: %s", g.Until.UTC().Format(time.RFC3339), g.Reason))
	}
	return out
}
