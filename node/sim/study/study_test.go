package study

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/node/sim/chart"
	"github.com/cloudshare/cloudshare/sched"
	"github.com/cloudshare/cloudshare/test/goldenfile"
	"github.com/cloudshare/cloudshare/test/raced"
)

// smallStudy is quick: 24 instances of half a day, under the race detector of a
// quarter of it.
func smallStudy(t *testing.T) *Study {
	t.Helper()
	s := DefaultStudy(openSample(t))
	s.Periods, s.Mappings, s.Loads, s.Sample = 2, 2, []float64{0.75, 1.5}, 5
	s.Setup.Period, s.Setup.Sites = 12*3600, 4
	if raced.Enabled {
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
		func(p *Report, b *bytes.Buffer) error { return p.Chart(b, chart.SVG) },
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
	if raced.Enabled {
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
	if raced.Enabled {
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
		if err := os.WriteFile(path, []byte(strings.Join(lines[:3], "")+damaged+strings.Join(lines[4:], "")),
			0o600); err != nil {
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
		rows = append(rows, &Row{
			Scale: 2, Phi: []int64{100, 100}, Total: 100,
			Waits: [][]int64{{50 + l1/2, 50 - l1/2}, {50, 50}},
		})
	}
	rows = append(rows, &Row{Scale: 2, Phi: []int64{0, 0}, Waits: [][]int64{{0, 0}, {0, 0}}})
	tally := TallyOf(rows, []string{"a", "b"}, sim.L1, nil)
	if tally.Instances != 5 || tally.Unwaited != 1 || tally.Wins(1) != 3 || tally.Losses(0) != 3 ||
		tally.Scores[0] != 0 {
		t.Errorf("%+v", tally)
	}
	if d := tally.Distance[0]; d.Mean != 0.24 || d.Median != 0.03 {
		t.Errorf("L1/v(N) of 0, .02, .04, .9: mean %v, median %v", d.Mean, d.Median)
	}
	if d := TallyOf(rows[4:], []string{"a", "b"}, sim.L1, nil).Excess[0]; d.Mean != 0 || d.Median != 0 {
		t.Errorf("of no instance: mean %v, median %v", d.Mean, d.Median)
	}
}

func TestResultsOfAnotherStudyAreRefused(t *testing.T) {
	s := smallStudy(t)
	path := filepath.Join(t.TempDir(), "rows")
	run(t, s, path, 1, 1)
	s.Setup.Seed++
	if _, err := OpenResults(path, s); !errors.Is(err, sim.ErrOtherStudy) {
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
	if _, err := OpenResults(path, s); !errors.Is(err, sim.ErrBusy) {
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
	w := openSample(t)
	for name, c := range map[string]struct {
		change func(*Study)
		want   error
	}{
		"no log":        {func(s *Study) { s.Workloads = nil }, sim.ErrBadCase},
		"policy":        {func(s *Study) { s.Policies = []string{"BEST"} }, sched.ErrUnknownPolicy},
		"load":          {func(s *Study) { s.Loads = []float64{0} }, sim.ErrBadCase},
		"sites":         {func(s *Study) { s.Setup.Sites = 13 }, sim.ErrBadCase},
		"a log twice":   {func(s *Study) { s.Workloads = append(s.Workloads, s.Workloads[0]) }, sim.ErrBadCase},
		"a log renamed": {func(s *Study) { other := *w; other.Name = "other"; s.Workloads = append(s.Workloads, &other) }, sim.ErrBadCase},
		"scenarios":     {func(s *Study) { s.Scenarios = []sim.Scenario{sim.Equal, sim.Zipf, sim.Equal} }, sim.ErrBadCase},
		"loads":         {func(s *Study) { s.Loads = []float64{1, 1} }, sim.ErrBadCase},
		"policies":      {func(s *Study) { s.Policies = append(s.Policies, sched.FairShare) }, sim.ErrBadCase},
		"long period":   {func(s *Study) { s.Setup.Period = 40 * 86400 }, sim.ErrTooShort},
		"few users":     {func(s *Study) { s.Setup.Sites, s.Setup.Period = 12, 60 }, sim.ErrTooFew},
	} {
		s := DefaultStudy(w)
		c.change(s)
		if err := s.Run(t.Context(), 1, nil, func(*Row) error { return nil }); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// The same case gives the same start log, entries and state, however often and
// beside whatever else it is played.
func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	w := openSample(t)
	s := sim.DefaultSetup()
	s.Scenario, s.Load = sim.Background, 1.5
	play := func(seed uint64) (string, sim.Outcome) {
		s := s
		s.Seed = seed
		in, err := w.Instance(&s, 3600, 0)
		if err != nil {
			t.Error(err)
			return "", sim.Outcome{}
		}
		in.Obey(sim.Rules{})
		out, err := sim.Play(&in.Case)
		if err != nil {
			t.Error(err)
			return "", sim.Outcome{}
		}
		var b bytes.Buffer
		if err := errors.Join(sim.StartLog(&b, &in.Case, out), sim.Schedule(&b, &in.Case, out),
			chart.Gantt(&b, chart.SVG, &in.Case, out, "t")); err != nil {
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
