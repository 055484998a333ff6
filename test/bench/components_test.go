package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// TestComponentFigures: what the benchmarks print becomes figures with an aim, and
// one that is missing is missed.
func TestComponentFigures(t *testing.T) {
	out := `BenchmarkTasks/docker-2   40  0 ns/op  4.0 bare/s  0.9 of-bare  3.6 tasks/s
BenchmarkTasks-2  200  0 ns/op  40.0 bare/s  6.1 calls/task  0.75 of-bare  30.0 tasks/s
`
	tab := newTable("m")
	containerComponent.add(tab, parseResults(out))
	kubeComponent.add(tab, parseResults(out))
	for i, want := range []struct{ verdict, note string }{{"met", "bare loop"}, {"MISSED", "bare loop"}, {"MISSED", "6.1 API calls a task"}} {
		if f := tab.figures[i]; f.verdict() != want.verdict || !strings.Contains(f.note, want.note) {
			t.Errorf("%s: %s %q", f.name, f.verdict(), f.note)
		}
	}
	if f := tab.figures[0]; f.measured != 3.6 || f.limit != 4 {
		t.Errorf("%+v", f)
	}
}

// TestMissingComponentIsSaid: no figure, no aim missed, but the reason and the
// remedy in its place.
func TestMissingComponentIsSaid(t *testing.T) {
	c := containerComponent
	c.programs = []string{"no-such-program"}
	tab, notes := newTable("m"), &bytes.Buffer{}
	if err := c.measure(t.Context(), environment{notes: notes}, tab); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes.String(), "containers: NOT MEASURED: ") {
		t.Error(notes)
	}
	if len(tab.figures) != 2 {
		t.Fatalf("%d figures", len(tab.figures))
	}
	for _, f := range tab.figures {
		if f.verdict() != "" || !math.IsNaN(f.measured) || !strings.HasPrefix(f.note, "NOT MEASURED: ") {
			t.Errorf("%+v", f)
		}
	}
}
