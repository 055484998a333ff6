package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// size is one place in the grid of the state machine's benchmarks.
type size struct {
	op    string // Submit, Match or Turnover
	kind  string // arrays or jobs
	sites int
	// waiting tasks
	waiting int
	// batch is how many operations one entry holds.
	batch int
}

// cost of one operation.
type cost struct{ ns, allocs float64 }

func (c cost) String() string {
	if math.IsNaN(c.ns) {
		return "-"
	}
	return fmt.Sprintf("%.0f (%.0f)", c.ns, c.allocs)
}

type grid map[size]cost

// gridOf picks the results that are places in the grid.
func gridOf(results []result) grid {
	g := grid{}
	for _, r := range results {
		var z size
		name := strings.ReplaceAll(r.name, "/", " ")
		if n, err := fmt.Sscanf(name, "%s sites=%d waiting=%d %s batch=%d", &z.op, &z.sites, &z.waiting, &z.kind, &z.batch); n == 5 && err == nil {
			g[z] = cost{r.value("ns/op"), r.value("allocs/op")}
		}
	}
	return g
}

// at returns NaN where nothing was measured.
func (g grid) at(z size) cost {
	if c, ok := g[z]; ok {
		return c
	}
	return cost{math.NaN(), math.NaN()}
}

// axis lists the values of one coordinate, ascending.
func axis[T int | string](g grid, of func(size) T) []T {
	var all []T
	for z := range g {
		all = append(all, of(z))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func sitesOf(z size) int   { return z.sites }
func waitingOf(z size) int { return z.waiting }
func batchOf(z size) int   { return z.batch }
func kindOf(z size) string { return z.kind }

// operations of the grid, and what one is.
var operations = []struct{ name, what string }{
	{"Submit", "submit"},
	{"Match", "match"},
	{"Turnover", "completion + match"},
}

// addAssignments gives the figure with an aim: the largest case, in batches.
func (g grid) addAssignments(t *table) {
	for _, kind := range []string{"arrays", "jobs"} {
		c := g.at(size{op: "Match", kind: kind, sites: 1000, waiting: 1_000_000, batch: 1024})
		t.add(figure{
			name: "assignments, 1000 sites, 1e6 waiting as " + kind + ", batches of 1024", measured: 1e9 / c.ns,
			unit: "/s", aim: aim{atLeast: 100_000}, note: fmt.Sprintf("%.0f ns and %.0f allocations each", c.ns, c.allocs),
		})
	}
}

// sheet shows ns and allocations: a row for each operation, a column for each
// length of the queue.
func (g grid) sheet() sheet {
	waiting := axis(g, waitingOf)
	s := sheet{title: "state machine: ns (allocations) of one operation, by waiting tasks"}
	s.head = []string{"operation", "sites", "waiting as", "batch"}
	for _, n := range waiting {
		s.head = append(s.head, fmt.Sprintf("%.0e", float64(n)))
	}
	s.head = append(s.head, "per decade")
	for _, op := range operations {
		for _, sites := range axis(g, sitesOf) {
			for _, kind := range axis(g, kindOf) {
				for _, batch := range axis(g, batchOf) {
					row := []string{op.what, fmt.Sprint(sites), kind, fmt.Sprint(batch)}
					line := g.along(waiting, size{op: op.name, kind: kind, sites: sites, batch: batch},
						func(z *size, n int) { z.waiting = n })
					for _, c := range line {
						row = append(row, c.String())
					}
					s.rows = append(s.rows, append(row, growthText(perDecade(waiting, line))))
				}
			}
		}
	}
	return s
}

// along walks one coordinate.
func (g grid) along(values []int, z size, set func(*size, int)) []cost {
	var line []cost
	for _, v := range values {
		set(&z, v)
		line = append(line, g.at(z))
	}
	return line
}

// perDecade returns by how much the time grows when the input grows tenfold, from
// the first to the last of a line.
func perDecade(values []int, line []cost) float64 {
	if len(line) < 2 {
		return math.NaN()
	}
	decades := math.Log10(float64(values[len(values)-1]) / float64(values[0]))
	return math.Pow(line[len(line)-1].ns/line[0].ns, 1/decades)
}

func growthText(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("× %.2f", v)
}
