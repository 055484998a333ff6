package sim

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim/swf"
	"github.com/cloudshare/cloudshare/sched"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

func sample(t *testing.T) *Workload {
	t.Helper()
	w, err := OpenWorkload(t.Context(), "testdata/sample.swf", func(p swf.Problem) { t.Error(p) })
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// smallStudy is quick: 24 instances of half a day, under the race detector of a
// quarter of it.
func smallStudy(t *testing.T) *Study {
	t.Helper()
	s := DefaultStudy(sample(t))
	s.Periods, s.Mappings, s.Loads, s.Sample = 2, 2, []float64{0.75, 1.5}, 5
	s.Setup.Period, s.Setup.Sites = 12*3600, 4
	if underRace {
		s.Setup.Period /= 4
	}
	return s
}

func report(t *testing.T, s *Study, rows []*Row) string {
	t.Helper()
	var b bytes.Buffer
	p := &Report{Study: s, Rows: rows, Command: "cloudshare sim table1 sample.swf", Variants: []Variant{{"as above", s, rows}}}
	for _, write := range []func(*Report, *bytes.Buffer) error{
		func(p *Report, b *bytes.Buffer) error { return p.Markdown(b) },
		func(p *Report, b *bytes.Buffer) error { return p.CSV(b) },
		func(p *Report, b *bytes.Buffer) error { return p.Chart(b, SVG) },
	} {
		if err := write(p, &b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// run plays what a results file lacks, and stops after so many rows.
func run(t *testing.T, s *Study, path string, workers, stop int) []*Row {
	t.Helper()
	results, err := OpenResults(path, s)
	if err != nil {
		t.Fatal(err)
	}
	defer results.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = s.Run(ctx, workers, results.Done(), func(r *Row) error {
		if stop--; stop == 0 {
			cancel()
		}
		return results.Save(r)
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return results.Rows()
}

// The same study gives the same bytes, on one worker or many, in one go or
// interrupted, with a torn last line.
func TestStudyIsTheSameHoweverItRuns(t *testing.T) {
	s := smallStudy(t)
	if underRace {
		s.Mappings = 1
	}
	dir := t.TempDir()
	want := report(t, s, run(t, s, filepath.Join(dir, "one"), 1, -1))
	if got := report(t, s, run(t, s, filepath.Join(dir, "many"), 8, -1)); got != want {
		t.Error("eight workers give another report")
	}
	path := filepath.Join(dir, "cut")
	if rows := run(t, s, path, 2, 5); len(rows) == 0 || len(rows) >= s.Size() {
		t.Fatalf("%d of %d rows after an interruption", len(rows), s.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-7], 0o644); err != nil {
		t.Fatal(err)
	}
	if got := report(t, s, run(t, s, path, 2, -1)); got != want {
		t.Error("an interrupted study gives another report")
	}
	if underRace {
		return // its study is a shorter one
	}
	goldenfile.Match(t, "report.md", want[:strings.Index(want, "log,scenario")])
}

// Whatever is wrong with a row, its instance alone is played again, and the
// report is the same.
func TestDamagedRowsArePlayedAgain(t *testing.T) {
	s := smallStudy(t)
	s.Mappings, s.Loads, s.Sample = 1, []float64{1.5}, 0
	path := filepath.Join(t.TempDir(), "rows")
	want := report(t, s, run(t, s, path, 1, -1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for name, change := range map[string]func(row string) string{
		"empty":          func(string) string { return "{}\n" },
		"no JSON":        func(string) string { return "hello\n" },
		"null":           func(string) string { return "null\n" },
		"number":         func(row string) string { return strings.Replace(row, `"Index":2,`, `"Index":99,`, 1) },
		"other number":   func(row string) string { return strings.Replace(row, `"Index":2,`, `"Index":1,`, 1) },
		"scale":          func(row string) string { return strings.Replace(row, `"Scale":12,`, `"Scale":0,`, 1) },
		"log":            func(row string) string { return strings.Replace(row, `"Log":"sample"`, `"Log":"other"`, 1) },
		"load":           func(row string) string { return strings.Replace(row, `"Load":1.5`, `"Load":15`, 1) },
		"no waits":       func(row string) string { return row[:strings.Index(row, `"Waits":`)] + `"Waits":[]}` + "\n" },
		"fewer sites":    func(row string) string { return strings.Replace(row, `"Waits":[[`, `"Waits":[[],[`, 1) },
		"another wait":   func(row string) string { return strings.Replace(row, `"Waits":[[`, `"Waits":[[1`, 1) },
		"another φ":      func(row string) string { return strings.Replace(row, `"Phi":[`, `"Phi":[7`, 1) },
		"negative total": func(row string) string { return strings.Replace(row, `"Total":`, `"Total":-`, 1) },
		"huge total":     func(row string) string { return strings.Replace(row, `"Total":`, `"Total":9000000000000`, 1) },
	} {
		damaged := change(lines[3])
		if damaged == lines[3] || !strings.Contains(lines[3], `"Index":2,`) {
			t.Fatalf("%s changes nothing of %s", name, lines[3])
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines[:3], "")+damaged+strings.Join(lines[4:], "")), 0o600); err != nil {
			t.Fatal(err)
		}
		results, err := OpenResults(path, s)
		if err != nil {
			t.Fatal(err)
		}
		if done := results.Done(); len(done) != s.Size()-1 || done[2] {
			t.Errorf("%s: the rows of %v were taken", name, done)
		}
		results.Close()
		if got := report(t, s, run(t, s, path, 1, -1)); got != want {
			t.Errorf("%s: another report", name)
		}
		if rows := run(t, s, path, 1, -1); len(rows) != s.Size() {
			t.Errorf("%s: %d rows the third time", name, len(rows))
		}
	}
}

// Means and medians are those of the instances in which somebody waits.
func TestTallyLeavesOutWhereNobodyWaits(t *testing.T) {
	var rows []*Row
	for _, l1 := range []int64{0, 2, 4, 90} { // two sites, φ = 50 each
		rows = append(rows, &Row{Scale: 2, Phi: []int64{100, 100}, Total: 100, Waits: [][]int64{{50 + l1/2, 50 - l1/2}, {50, 50}}})
	}
	rows = append(rows, &Row{Scale: 2, Phi: []int64{0, 0}, Waits: [][]int64{{0, 0}, {0, 0}}})
	tally := TallyOf(rows, []string{"a", "b"}, L1, nil)
	if tally.Instances != 5 || tally.Unwaited != 1 || tally.Wins(1) != 3 || tally.Losses(0) != 3 || tally.Scores[0] != 0 {
		t.Errorf("%+v", tally)
	}
	if d := tally.Distance[0]; d.Mean != 0.24 || d.Median != 0.03 {
		t.Errorf("L1/v(N) of 0, .02, .04, .9: mean %v, median %v", d.Mean, d.Median)
	}
	if d := TallyOf(rows[4:], []string{"a", "b"}, L1, nil).Excess[0]; d.Mean != 0 || d.Median != 0 {
		t.Errorf("of no instance: mean %v, median %v", d.Mean, d.Median)
	}
}

func TestResultsOfAnotherStudyAreRefused(t *testing.T) {
	s := smallStudy(t)
	path := filepath.Join(t.TempDir(), "rows")
	run(t, s, path, 1, 1)
	s.Setup.Seed++
	if _, err := OpenResults(path, s); !errors.Is(err, ErrOtherStudy) {
		t.Errorf("another seed's results: %v", err)
	}
}

// Two processes that wrote the same results would spoil them.
func TestResultsHaveOneWriter(t *testing.T) {
	s := smallStudy(t)
	path := filepath.Join(t.TempDir(), "rows")
	first, err := OpenResults(path, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenResults(path, s); !errors.Is(err, ErrBusy) {
		t.Errorf("a second writer: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := OpenResults(path, s)
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	second.Close()
}

func TestBadStudiesSayWhatToDo(t *testing.T) {
	w := sample(t)
	for name, c := range map[string]struct {
		change func(*Study)
		want   error
	}{
		"no log":        {func(s *Study) { s.Workloads = nil }, ErrBadCase},
		"policy":        {func(s *Study) { s.Policies = []string{"BEST"} }, sched.ErrUnknownPolicy},
		"load":          {func(s *Study) { s.Loads = []float64{0} }, ErrBadCase},
		"sites":         {func(s *Study) { s.Setup.Sites = 13 }, ErrBadCase},
		"a log twice":   {func(s *Study) { s.Workloads = append(s.Workloads, s.Workloads[0]) }, ErrBadCase},
		"a log renamed": {func(s *Study) { other := *w; other.Name = "other"; s.Workloads = append(s.Workloads, &other) }, ErrBadCase},
		"scenarios":     {func(s *Study) { s.Scenarios = []Scenario{Equal, Zipf, Equal} }, ErrBadCase},
		"loads":         {func(s *Study) { s.Loads = []float64{1, 1} }, ErrBadCase},
		"policies":      {func(s *Study) { s.Policies = append(s.Policies, sched.FairShare) }, ErrBadCase},
		"long period":   {func(s *Study) { s.Setup.Period = 40 * 86400 }, ErrTooShort},
		"few users":     {func(s *Study) { s.Setup.Sites, s.Setup.Period = 12, 60 }, ErrTooFew},
	} {
		s := DefaultStudy(w)
		c.change(s)
		if err := s.Run(t.Context(), 1, nil, func(*Row) error { return nil }); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestWorkloadDropsAndSorts(t *testing.T) {
	line := " -1 -1 2 7200 -1 1 3 1 -1 1 -1 -1 -1\n"
	text := "1 50 5 3600 2" + line + "2 40 5 0 2" + line + "3 45.9 5 10.2 -1" + line + "4 60 5 7 0 -1 -1 0 1 -1 1 3 1 -1 1 -1 -1 -1\nx\n"
	var problems int
	w, err := ReadWorkload(strings.NewReader(text), "four", func(swf.Problem) { problems++ })
	if err != nil {
		t.Fatal(err)
	}
	if w.Lines != 4 || w.Dropped != 2 || w.Malformed != 1 || problems != 1 || w.Unsorted != 2 {
		t.Errorf("%+v", w)
	}
	want := []Job{{Number: 3, Submit: 0, Run: 11, Width: 2, Asked: 7200, User: 3}, {Number: 1, Submit: 5, Run: 3600, Width: 2, Asked: 7200, User: 3}}
	if len(w.Jobs) != 2 || w.Jobs[0] != want[0] || w.Jobs[1] != want[1] {
		t.Errorf("jobs %+v", w.Jobs)
	}
	_, err = ReadWorkload(strings.NewReader("2 40 5 0 2"+line), "none", nil)
	if !errors.Is(err, ErrNoWork) {
		t.Errorf("a log in which nothing ran: %v", err)
	}
}

// A file cut off anywhere, in its compressed header, too, names line and remedy.
func TestCutOffLogsSayWhatToDo(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte("1 0 5 3600 2 -1 -1 2 7200 -1 1 3 1 -1 1 -1 -1 -1\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for n := 2; n < b.Len(); n++ {
		_, err := ReadWorkload(bytes.NewReader(b.Bytes()[:n]), "cut.swf.gz", nil)
		if !errors.Is(err, swf.ErrTruncated) || !strings.Contains(err.Error(), "cut.swf.gz:") || !strings.Contains(err.Error(), "fetch it again") {
			t.Errorf("%d of %d bytes: %v", n, b.Len(), err)
		}
	}
	w, err := ReadWorkload(bytes.NewReader(b.Bytes()), "whole.swf.gz", nil)
	if err != nil || w.SHA256 != "b82716f83685f231c584d66faebea40a97a669433d03896bf315098fb5d0d068" {
		t.Errorf("the whole: %+v, %v", w, err)
	}
}

// lines is a log of jobs: submission, run time and processors of each, and user.
func lines(t *testing.T, jobs ...[4]int64) *Workload {
	t.Helper()
	var b strings.Builder
	for i, j := range jobs {
		fmt.Fprintf(&b, "%d %d -1 %d %d -1 -1 -1 -1 -1 1 %d -1 -1 -1 -1 -1 -1\n", i+1, j[0], j[1], j[2], j[3])
	}
	w, err := ReadWorkload(strings.NewReader(b.String()), "lines", func(p swf.Problem) { t.Error(p) })
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestInstanceRefusesWhatItCannotHold(t *testing.T) {
	huge := [4]int64{0, 4e9, 4e9, 1}
	for name, c := range map[string]struct {
		jobs       [][4]int64
		from, unit int64
		cores      int64
		want       string
	}{
		"after the end":     {[][4]int64{{0, 1, 1, 1}, {9, 1, 1, 1}}, 10, 0, 1, "lines from second 10: its jobs are submitted from second 0 to 9"},
		"far after the end": {[][4]int64{{0, 1, 1, 1}}, math.MaxInt64, 3600, 1, "begin there"},
		"before the start":  {[][4]int64{{0, 1, 1, 1}}, -5, 3600, 1, "begin there"},
		"one huge job":      {[][4]int64{huge}, 0, 0, 0, "lines: cannot be simulated: job 1 on 4000000000 processors for 4000000000 seconds"},
		"huge in units":     {[][4]int64{{0, 1, 1, 1}, huge}, 0, 3600, 0, "job 2 on 4000000000 processors"},
		"huge in sum":       {[][4]int64{{0, 1e9, 5e8, 1}, {0, 1e9, 5e8, 1}, {0, 1e9, 5e8, 1}}, 0, 0, 0, "job 3 on 500000000 processors"},
		"all too wide":      {[][4]int64{{0, 1, 4, 1}, {0, 1, 5, 1}}, 0, 0, 3, "each of 2 jobs is wider than every site it could run at, the largest has 3 cores"},
	} {
		s := DefaultSetup()
		s.Sites, s.Unit, s.Cores = 1, c.unit, c.cores
		if _, err := lines(t, c.jobs...).Instance(&s, c.from, 0); !errors.Is(err, ErrBadCase) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A log of exactly one period has one period.
func TestDrawFromALogOfOnePeriod(t *testing.T) {
	w := lines(t, [4]int64{7, 1, 1, 1}, [4]int64{7 + 86399, 1, 1, 1})
	s := DefaultSetup()
	s.Sites = 1
	if from, _, err := w.Draw(&s, 0); err != nil || from != 0 {
		t.Errorf("drawn at %d, %v", from, err)
	}
	in, err := w.Instance(&s, 0, 0)
	if err != nil || in.Jobs != 2 {
		t.Errorf("%+v, %v", in, err)
	}
	s.Period++
	if _, _, err := w.Draw(&s, 0); !errors.Is(err, ErrTooShort) {
		t.Errorf("a period of a second more: %v", err)
	}
}

func TestInstanceFollowsTheSetup(t *testing.T) {
	w := sample(t)
	s := DefaultSetup()
	in, err := w.Instance(&s, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var units int64
	for _, j := range w.Between(0, s.Period) {
		units += j.Width * ((j.Run + 3599) / 3600)
	}
	if int64(len(in.Tasks)) != units {
		t.Errorf("%d tasks of %d units", len(in.Tasks), units)
	}
	perSite := max(1, (units+60)/24/5)
	if got := in.Cores; len(got) != 5 || got[0] != got[4] || got[0] < perSite-1 || got[0] > perSite+1 {
		t.Errorf("cores %v for %d units", got, units)
	}
	if err := in.Validate(); err == nil {
		t.Error("an instance without parameters is valid")
	}
	owner := map[int64]int{}
	for i := range in.Tasks {
		owner[in.Tasks[i].Job] = in.Tasks[i].Site
	}
	again, _ := w.Instance(&s, 0, 0)
	other, _ := w.Instance(&s, 0, 1)
	same := func(a *Instance) bool {
		for i := range a.Tasks {
			if owner[a.Tasks[i].Job] != a.Tasks[i].Site {
				return false
			}
		}
		return true
	}
	if !same(again) || same(other) {
		t.Error("a mapping depends on its number only")
	}
}

func TestApportion(t *testing.T) {
	for _, c := range []struct {
		total int64
		e     float64
		want  []int64
	}{
		{100, 1, []int64{44, 22, 14, 11, 9}}, // quotas 43.80 21.90 14.60 10.95 8.76; remainders .95 .90 .80 .76 first
		{5, 3, []int64{1, 1, 1, 1, 1}},
		{20, 0, []int64{4, 4, 4, 4, 4}},
	} {
		got := apportion(c.total, zipf(5, c.e))
		var sum int64
		for _, n := range got {
			sum += n
		}
		if sum != c.total || !slices.Equal(got, c.want) {
			t.Errorf("%d by exponent %v: %v, want %v", c.total, c.e, got, c.want)
		}
	}
}

// The same case gives the same start log, entries and state, however often and
// beside whatever else it is played.
func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	w := sample(t)
	s := DefaultSetup()
	s.Scenario, s.Load = Background, 1.5
	play := func(seed uint64) (string, Outcome) {
		s := s
		s.Seed = seed
		in, err := w.Instance(&s, 3600, 0)
		if err != nil {
			t.Error(err)
			return "", Outcome{}
		}
		in.obey(Rules{})
		out, err := Play(&in.Case)
		if err != nil {
			t.Error(err)
			return "", Outcome{}
		}
		var b bytes.Buffer
		if err := errors.Join(StartLog(&b, &in.Case, out), Schedule(&b, &in.Case, out), Gantt(&b, SVG, &in.Case, out, "t")); err != nil {
			t.Error(err)
		}
		return b.String(), *out
	}
	want, out := play(1)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got, o := play(1); got != want || o.Hash != out.Hash || o.Entries != out.Entries {
				t.Error("the same seed gives other bytes")
			}
		})
	}
	wg.Wait()
	if got, o := play(2); got == want || o.Hash == out.Hash {
		t.Error("another seed gives the same bytes")
	}
}
