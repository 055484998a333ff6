package archive

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/sim/swf"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

// sample is an archive with one attempt of each sort.
func sample(t *testing.T) *Archive {
	t.Helper()
	a := openTest(t, t.TempDir(), &clock{epoch}, func(c *Config) { c.Scope = All })
	lost, lent, own, others, waiting := ended(1, time.Hour), ended(2, 2*time.Hour), ended(3, 3*time.Hour),
		ended(4, 25*time.Hour), ended(1, 26*time.Hour)
	lost.Outcome, lost.Final, lost.ExitCode, lost.Reason = fsm.EndLost, false, 0, "its site lost it"
	lent.Job.Site, lent.Site, lent.Outcome, lent.ExitCode = "b", "a", fsm.EndFailed, 3
	own.Site, own.Home, own.EndedMs, own.Labels = "a", true, -1, nil
	own.Name = "=cmd()"
	others.Job.Site, others.Site = "c", "b"
	waiting = Attempt{
		Job: waiting.Job, Task: 1, Count: 3, Outcome: fsm.EndCancelled, Final: true, Need: waiting.Need,
		Labels: waiting.Labels,
		Queued: waiting.Queued, Ended: waiting.Ended, EndedMs: waiting.EndedMs, Index: 9,
	}
	last := ended(1, 27*time.Hour)
	last.Number, last.Need.MemMiB = 2, 100
	last.Measured = command.Measured{
		PeakBytes: 1 << 20, UserMs: 5000, SystemMs: 1, InBytes: 17, OutBytes: 4 << 30, Source: command.MeasuredCgroup,
	}
	must(t, a.Append([]Attempt{lost, lent, own, others, waiting, last}, node.EventID{Entry: 9, N: 1}))
	must(t, a.AddGap(Gap{From: 9, To: 12, Since: last.Ended, Until: last.Ended.Add(time.Hour), Reason: "the broker was away"}))
	return a
}

func TestReports(t *testing.T) {
	a := sample(t)
	var out strings.Builder
	for _, q := range []struct {
		by string
		q  Query
	}{
		{"site", Query{}},
		{"day", Query{}},
		{"hour", Query{Since: epoch.Add(2 * time.Hour), Until: epoch.Add(25 * time.Hour)}},
		{"month", Query{Site: "c"}},
		{"label:team", Query{}},
		{"label:team", Query{Labels: map[string]string{"team": "nobody's"}}},
		{"user", Query{UserOf: func(id command.JobID) string {
			return map[command.JobID]string{{Site: "a", Num: 1}: "alice", {Site: "a", Num: 3}: "bob"}[id]
		}}},
		{"user", Query{}},
	} {
		r, err := a.Report(t.Context(), q.q, q.by)
		must(t, err)
		fmt.Fprintf(&out, "by %s of %s, scope %s, from %s to %s, gaps %d\n", r.By, r.Site, r.Scope, r.First.Format(time.RFC3339), r.Last.Format(time.RFC3339),
			len(r.Gaps))
		for _, x := range append(r.Rows, r.Total) {
			fmt.Fprintf(&out, "  %-10s own %d lent %d used %d others %d | ran %d | tasks %d: %d %d %d %d | waits %d %s %s %s\n", x.Key,
				x.Own, x.Lent, x.Used, x.Others, x.Attempts, x.Tasks, x.Succeeded, x.Failed, x.Cancelled, x.Lost,
				x.Waits, x.WaitMean, x.WaitP50, x.WaitP95)
		}
	}
	goldenfile.Match(t, "reports.txt", out.String())
	for _, by := range []string{"", "week", "label:", "sites"} {
		if _, err := a.Report(t.Context(), Query{}, by); !errors.Is(err, ErrBadGroup) {
			t.Errorf("by %q: %v", by, err)
		}
	}
}

// TestReportIsBounded: rows beyond the bound share one.
func TestReportIsBounded(t *testing.T) {
	a := openTest(t, t.TempDir(), &clock{epoch}, nil)
	var many []Attempt
	for i := range 1200 {
		x := ended(uint64(i), time.Hour)
		x.Labels = map[string]string{"team": fmt.Sprint(i)}
		many = append(many, x)
	}
	must(t, a.Append(many, node.EventID{Entry: 1}))
	r, err := a.Report(t.Context(), Query{}, "label:team")
	must(t, err)
	if n := len(r.Rows); n != maxRows+1 || r.Rows[0].Key != OtherRow || r.Rows[0].Tasks != 200 ||
		r.Total.Tasks != 1200 {
		t.Errorf("%d rows, first %+v", n, r.Rows[0])
	}
}

func TestExports(t *testing.T) {
	a := sample(t)
	var all strings.Builder
	for _, format := range []string{NDJSON, CSV, SWF} {
		var out bytes.Buffer
		must(t, a.Export(t.Context(), Query{}, format, &out))
		fmt.Fprintf(&all, "==== %s ====\n%s", format, &out)
	}
	goldenfile.Match(t, "exports.txt", all.String())
	if err := a.Export(t.Context(), Query{}, "xml", io.Discard); !errors.Is(err, ErrBadFormat) {
		t.Errorf("xml: %v", err)
	}
}

// TestExportsAreWhatTheySay: a reader of each format reads them back.
func TestExportsAreWhatTheySay(t *testing.T) {
	a := sample(t)
	var out bytes.Buffer
	must(t, a.Export(t.Context(), Query{}, CSV, &out))
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 7 {
		t.Errorf("csv: %d rows, %v", len(rows), err)
	}
	must(t, a.Export(t.Context(), Query{}, NDJSON, &out))
	dec := json.NewDecoder(&out)
	n := 0
	for ; dec.More(); n++ {
		var l Line
		must(t, dec.Decode(&l))
	}
	if n != 7 {
		t.Errorf("ndjson: %d lines", n)
	}
	must(t, a.Export(t.Context(), Query{}, SWF, &out))
	r := swf.NewReader(&out, "export", func(p swf.Problem) { t.Error(p) })
	for n = 0; ; n++ {
		if _, err := r.Next(); err != nil {
			break
		}
	}
	if n != 7 {
		t.Errorf("swf: %d tasks, want 4 that ran and 3 that were cancelled", n)
	}
}

func TestTooManyToSort(t *testing.T) {
	a := openTest(t, t.TempDir(), &clock{epoch}, nil)
	x := ended(1, time.Hour)
	x.Count = MaxSorted + 1
	must(t, a.Append([]Attempt{x}, node.EventID{Entry: 1}))
	if err := a.Export(t.Context(), Query{}, SWF, io.Discard); !errors.Is(err, ErrTooMany) {
		t.Errorf("%v", err)
	}
}

// TestQuantiles are right to a 64th.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 1, 200).Draw(t, "values")
		var h histogram
		for _, v := range values {
			h.add(time.Duration(v) * time.Millisecond)
		}
		slices.Sort(values)
		for _, part := range []float64{.5, .95, 1} {
			want := values[max(0, int(math.Ceil(part*float64(len(values))))-1)]
			got := h.quantile(part).Milliseconds()
			if d := math.Abs(float64(got - want)); d > float64(want)/64 {
				t.Fatalf("quantile %v of %v: %d, want %d", part, values, got, want)
			}
		}
	})
}
