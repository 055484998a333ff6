package main

import (
	"fmt"
	"math"
)

// dimension is a coordinate of the grid along which time is to grow less than
// its input.
type dimension struct {
	name string
	of   func(size) int
	set  func(*size, int)
}

var dimensions = []dimension{
	{"waiting tasks", waitingOf, func(z *size, n int) { z.waiting = n }},
	{"sites", sitesOf, func(z *size, n int) { z.sites = n }},
}

// lines returns the growth per decade along a dimension, for every line of the
// grid with this operation and batch size (0 = all).
func (g grid) lines(d dimension, op string, batch int) []float64 {
	var out []float64
	values := axis(g, d.of)
	seen := map[size]bool{}
	for z := range g {
		if z.op != op || (batch > 0 && z.batch != batch) {
			continue
		}
		d.set(&z, 0)
		if seen[z] {
			continue
		}
		seen[z] = true
		out = append(out, perDecade(values, g.along(values, z, d.set)))
	}
	return out
}

// worst returns NaN when any is, or there is none.
func worst(values []float64) float64 {
	most := math.NaN()
	for i, v := range values {
		if i == 0 {
			most = v
		}
		most = max(most, v) // max keeps NaN
	}
	return most
}

// mean returns the geometric one: growth multiplies.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

// addGrowth compares the worst line of each operation with its input's growth.
func (g grid) addGrowth(t *table) {
	for _, d := range dimensions {
		for _, op := range operations {
			all := g.lines(d, op.name, 0)
			t.add(figure{
				name: fmt.Sprintf("growth of a %s per decade of %s", op.what, d.name), measured: worst(all), unit: "×",
				aim: aim{below: 10}, note: fmt.Sprintf("worst of %d lines, mean %s; the input grows × 10", len(all), growthText(mean(all))),
			})
		}
	}
}

// growthSheet shows the mean and worst growth for each operation and batch.
func (g grid) growthSheet() sheet {
	s := sheet{
		title: "state machine: growth of the time per tenfold input, mean (worst) of the lines above",
		head:  []string{"operation", "batch"},
	}
	for _, d := range dimensions {
		s.head = append(s.head, d.name)
	}
	for _, op := range operations {
		for _, batch := range axis(g, batchOf) {
			row := []string{op.what, fmt.Sprint(batch)}
			for _, d := range dimensions {
				all := g.lines(d, op.name, batch)
				row = append(row, fmt.Sprintf("%s (%s)", growthText(mean(all)), growthText(worst(all))))
			}
			s.rows = append(s.rows, row)
		}
	}
	return s
}

// addPages adds what is asked of a state with a million waiting tasks, without
// HTTP.
func addPages(t *table, results []result) {
	for _, c := range []struct{ name, what string }{
		{"newest", "newest"},
		{"owner", "of one owner"},
		{"rare-state", "of a state that none is in"},
		{"rare-label", "with a label that none has"},
	} {
		t.add(figure{
			name: "state machine, page of 100 of 1e6 waiting jobs, " + c.what, unit: "ms",
			measured: find(results, "List/"+c.name).value("ns/op") / 1e6,
		})
	}
	for _, c := range []struct{ name, what string }{
		{"jobs-a-site=1", "1000 arrays"},
		{"jobs-a-site=1000", "1e6 jobs"},
	} {
		why := find(results, "Why/sites=1000/"+c.name).value("ns/op") / 1e6
		if math.IsNaN(why) {
			continue // left out of a quick run
		}
		t.add(figure{name: "state machine, why the last of " + c.what + " waits", unit: "ms", measured: why})
	}
}

// addSnapshots adds what a snapshot of a million separate jobs costs.
func addSnapshots(t *table, results []result) {
	for _, kind := range []string{"shared", "own"} {
		at := func(step, unit string) float64 { return find(results, "Snapshot/"+kind+"/"+step).value(unit) }
		if math.IsNaN(at("pause", "ns/op")) {
			continue // left out of a quick run
		}
		for _, step := range []string{"pause", "write", "restore", "hash"} {
			t.add(figure{
				name: fmt.Sprintf("snapshot of 1e6 jobs, %s payload, %s", kind, step), unit: "ms", measured: at(step, "ns/op") / 1e6,
			})
		}
		t.add(figure{name: fmt.Sprintf("bytes a job, %s payload, in memory", kind), unit: "B", measured: at("pause", "heapB/job")})
		t.add(figure{name: fmt.Sprintf("bytes a job, %s payload, in a snapshot", kind), unit: "B", measured: at("write", "B/job")})
	}
}
