package main

import (
	"math"
	"strings"
	"testing"
)

func TestParseResultsKeepsOnlyResults(t *testing.T) {
	got := parseResults("goos: linux\nBenchmarkApply/x-2   10   12.5 ns/op   7 B/own   3 allocs/op\nBenchmarkOuter\nPASS\nok  pkg 1s\n")
	if len(got) != 1 || got[0].name != "Apply/x" {
		t.Fatalf("kept %+v", got)
	}
	if r := got[0]; r.value("ns/op") != 12.5 || r.value("B/own") != 7 || r.value("allocs/op") != 3 || !math.IsNaN(r.value("B/op")) {
		t.Errorf("values %v", r.values)
	}
	if r := find(got, "Apply"); !math.IsNaN(r.value("ns/op")) {
		t.Errorf("a name that is not there has %v", r)
	}
}

// gridText is what the state machine's benchmarks print, for two sizes.
const gridText = `
BenchmarkMatch/sites=10/waiting=1000/jobs/batch=1024-2      2048   100 ns/op  10 B/op  1 allocs/op
BenchmarkMatch/sites=10/waiting=100000/jobs/batch=1024-2    2048   400 ns/op  10 B/op  1 allocs/op
BenchmarkMatch/sites=1000/waiting=1000/jobs/batch=1024-2    2048   900 ns/op  10 B/op  2 allocs/op
BenchmarkMatch/sites=1000/waiting=100000/jobs/batch=1024-2  2048   900 ns/op  10 B/op  2 allocs/op
BenchmarkSubmit/sites=10/waiting=1000/arrays/batch=1-2      2048   50 ns/op   10 B/op  3 allocs/op
BenchmarkSnapshot/shared/pause-2                            3      5 ns/op
`

func TestGridHoldsWhatWasMeasured(t *testing.T) {
	g := gridOf(parseResults(gridText))
	if len(g) != 5 {
		t.Fatalf("%d places: %v", len(g), g)
	}
	if c := g.at(size{"Submit", "arrays", 10, 1000, 1}); c != (cost{50, 3}) {
		t.Errorf("a submission costs %v", c)
	}
	if c := g.at(size{"Submit", "arrays", 10, 1000, 64}); !math.IsNaN(c.ns) {
		t.Errorf("what was not measured costs %v", c)
	}
}

func TestGrowthIsPerDecade(t *testing.T) {
	g := gridOf(parseResults(gridText))
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-9 }
	if got := g.lines(dimensions[0], "Match", 0); len(got) != 2 || !near(worst(got), 2) || !near(mean(got), math.Sqrt2) {
		t.Errorf("along the queue × 4 and × 1 in two decades each: %v", got)
	}
	if got := g.lines(dimensions[1], "Match", 1024); len(got) != 2 || !near(worst(got), 3) ||
		!near(mean(got), math.Sqrt(4.5)) {
		t.Errorf("along the sites × 9 and × 2.25 in two decades each: %v", got)
	}
	if got := g.lines(dimensions[0], "Turnover", 0); len(got) != 0 || !math.IsNaN(worst(got)) {
		t.Errorf("an operation that was not measured grows %v", got)
	}
}

func TestStateSheetsAndFigures(t *testing.T) {
	results := parseResults(gridText)
	g := gridOf(results)
	tab := newTable("m")
	g.addAssignments(tab)
	g.addGrowth(tab)
	tab.addSheet(g.sheet())
	tab.addSheet(g.growthSheet())
	addPages(tab, results)
	addSnapshots(tab, results)
	var b strings.Builder
	tab.write(&b)
	for _, want := range []string{
		"growth of a match per decade of waiting tasks", " 2 × ",
		"match 10 jobs 1024 100 (1) 400 (1) × 2.00",
		"match 1024 × 1.41 (× 2.00) × 2.12 (× 3.00)",
		"snapshot of 1e6 jobs, shared payload, pause",
	} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	if tab.figures[0].verdict() != "MISSED" {
		t.Error("a case that was not measured counts as met")
	}
}
