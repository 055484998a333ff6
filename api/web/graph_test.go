package web

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/api/internal/jobgraph"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

// graphOf makes a graph of n jobs around one, from 0, with edges FROM-TO[:WHEN].
func graphOf(n, at int, edges ...string) *jobgraph.Graph {
	g := &jobgraph.Graph{At: at}
	for i := range n {
		job := &node.Job{Counts: map[string]uint32{}, State: "succeeded"}
		job.ID, job.Spec.Name = command.JobID{Site: "site-1", Num: uint64(i + 1)}, fmt.Sprintf("step %d", i+1)
		if i == at {
			job.State = "running"
		} else if i > at {
			job.State, job.Counts[node.Held] = "queued", 1
		}
		g.Nodes = append(g.Nodes, jobgraph.Node{ID: job.ID, Job: job, State: job.State})
	}
	for _, text := range edges {
		e := jobgraph.Edge{}
		ends, when, _ := strings.Cut(text, ":")
		if _, err := fmt.Sscanf(ends, "%d-%d", &e.From, &e.To); err != nil {
			panic(text)
		}
		for w := range jobspec.WhenEach + 1 {
			if w.String() == when {
				e.When = w
			}
		}
		g.Edges = append(g.Edges, e)
	}
	return g
}

// TestGraphs draws graphs as text: each column from the top, and all lines.
func TestGraphs(t *testing.T) {
	fan := []string{}
	for i := 1; i <= 4; i++ {
		fan = append(fan, fmt.Sprintf("0-%d", i), fmt.Sprintf("%d-5", i))
	}
	var b strings.Builder
	for _, c := range []struct {
		name string
		g    *jobgraph.Graph
	}{
		{"a chain", graphOf(3, 1, "0-1", "1-2")},
		{"a fan around its end", graphOf(6, 5, fan...)},
		{"a fan around its beginning", graphOf(6, 0, fan...)},
		{"an edge that passes a column, and all wishes", graphOf(5, 3, "0-1", "1-3:any", "0-3:notok", "0-4:each", "3-4", "2-3")},
		{"two ways that would cross", graphOf(5, 4, "0-3", "1-2", "2-4", "3-4")},
	} {
		d := drawGraph(c.g)
		fmt.Fprintf(&b, "%s: %d x %d\n", c.name, d.Width, d.Height)
		for _, x := range d.Boxes {
			fmt.Fprintf(&b, "  box %3d %3d  %s | %s\n", x.X, x.Y, x.Text, x.Title)
		}
		for _, x := range d.Ports {
			fmt.Fprintf(&b, "  port %3d %3d  %s, open %v\n", x.X, x.Y, x.Label, x.Open)
		}
		for _, x := range d.Lines {
			fmt.Fprintf(&b, "  line %s  %s, open %v\n", x.D, x.Title, x.Open)
		}
	}
	goldenfile.Match(t, "graphs.txt", b.String())
}

var numbers = regexp.MustCompile(`-?\d+`)

// TestGraphsAreLegible: of any graph no boxes lie upon each other or leave the picture, all lines lead from left to
// right, where boxes are they are level and beside them, and no label has another line on it.
func TestGraphsAreLegible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 50).Draw(t, "nodes")
		at := rapid.IntRange(0, n-1).Draw(t, "at")
		var edges []string
		for to := 1; to < n; to++ {
			for _, from := range rapid.SliceOfNDistinct(rapid.IntRange(0, to-1), 1, 4, rapid.ID[int]).Draw(t, "from") {
				edges = append(edges, fmt.Sprintf("%d-%d:%s", from, to, rapid.SampledFrom(jobspec.AfterWords()).Draw(t, "when")))
			}
		}
		d := drawGraph(graphOf(n, at, edges...))
		drawn := 0
		for _, l := range d.Lines {
			if l.Title != "" {
				drawn++
			}
		}
		if len(d.Boxes) != n || drawn != len(edges) {
			t.Fatalf("%d boxes of %d, %d lines of %d", len(d.Boxes), n, drawn, len(edges))
		}
		for i, a := range d.Boxes {
			if a.X < 0 || a.Y < 0 || a.X+boxWidth > d.Width || a.Y+boxHeight > d.Height {
				t.Fatalf("%+v leaves %d x %d", a, d.Width, d.Height)
			}
			for _, b := range d.Boxes[:i] {
				if a.X < b.X+boxWidth && b.X < a.X+boxWidth && a.Y < b.Y+boxHeight && b.Y < a.Y+boxHeight {
					t.Fatalf("%s lies upon %s", a.ID, b.ID)
				}
			}
		}
		for i, a := range d.Ports {
			for _, b := range d.Ports[:i] {
				if a.X == b.X && max(a.Y, b.Y)-min(a.Y, b.Y) < 12 {
					t.Fatalf("ports %+v and %+v are too near", a, b)
				}
			}
		}
		for _, l := range d.Lines {
			checkLine(t, &d, l.D)
		}
	})
}

// checkLine checks a path of curves, each with a level piece behind it.
func checkLine(t *rapid.T, d *graph, path string) {
	var v []int
	for _, text := range numbers.FindAllString(path, -1) {
		n, _ := strconv.Atoi(text)
		v = append(v, n)
	}
	x, y := v[0], v[1]
	for v = v[2:]; len(v) > 0; v = v[7:] {
		half, join, next, right := v[0], v[4], v[5], v[6]
		if v[1] != y || v[2] != half || v[3] != next || x >= half || half >= join || join >= right {
			t.Fatalf("%s goes back or is not smooth, at %d", path, x)
		}
		for _, b := range d.Boxes {
			curve := b.X < join && b.X+boxWidth > x
			if curve || b.X < right && b.X+boxWidth > join && next >= b.Y && next <= b.Y+boxHeight {
				t.Fatalf("%s crosses %s", path, b.ID)
			}
		}
		x, y = right, next
	}
}

// TestGraphWords: there is no picture without edges; what is not kept, or not drawn, is said.
func TestGraphWords(t *testing.T) {
	if d := drawGraph(graphOf(1, 0)); len(d.Boxes) != 0 {
		t.Errorf("%+v", d)
	}
	g := graphOf(3, 1, "0-1", "1-2")
	g.Nodes[0].Job, g.Nodes[0].State = nil, node.OutcomeUnknown
	g.Nodes[1].MoreBefore, g.Nodes[1].MoreAfter = 3, 9988
	g.Nodes[2].Job.Spec.Name = strings.Repeat("x", 100)
	d := drawGraph(g)
	for i, want := range []graphBox{
		{Text: "site-1.1 · no longer kept", Fill: "fill-none", Sure: true, Title: "site-1.1, no longer kept"},
		{Text: "site-1.2 · running", Fill: "fill-running", More: "3 more before, 9,988 more after", Title: "site-1.2, step 2, running, after site-1.1 (ok), 3 more before, 9,988 more after", Current: true},
		{Text: "site-1.3 · held", Fill: "fill-held", Title: "site-1.3, " + strings.Repeat("x", 79) + "…, held, after site-1.2 (ok)"},
	} {
		got := d.Boxes[i]
		if len([]rune(got.Name)) > maxBoxName {
			t.Errorf("its name does not fit: %q", got.Name)
		}
		got.ID, got.X, got.Y, got.Name = command.JobID{}, 0, 0, ""
		if got != want {
			t.Errorf("%+v", got)
		}
	}
	if d.More != 9991 || !d.Open || !d.Over || fmt.Sprint(d.States) != "[running held]" {
		t.Errorf("%d more, open %v, over %v, %v", d.More, d.Open, d.Over, d.States)
	}
}

// BenchmarkGraph draws the largest picture that there may be: each of 50 jobs names all before it.
func BenchmarkGraph(b *testing.B) {
	var edges []string
	for to := 1; to < 50; to++ {
		for from := range to {
			edges = append(edges, fmt.Sprintf("%d-%d", from, to))
		}
	}
	g := graphOf(50, 25, edges...)
	for b.Loop() {
		drawGraph(g)
	}
}
