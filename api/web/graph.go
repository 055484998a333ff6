package web

import (
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/jobgraph"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// graphBounds are those of the picture on a job's page.
var graphBounds = jobgraph.Bounds{Depth: 6, Nodes: 50, Fan: 12}

// graph is a picture of jobs that wait for each other, drawn by the template "graph". Coordinates are in units of the
// drawing.
type graph struct {
	Width, Height int
	Title         string
	Boxes         []graphBox // by column, from top to bottom
	Lines         []graphLine
	Ports         []graphPort
	States        []string // that it has, for the legend
	Open, Over    bool     // has lines of what has not ended, and of what has
	More          int      // times that a job is named, or waits, which is not drawn
	AtX           int      // where the job's own box is
}

// graphBox is a job.
type graphBox struct {
	ID      command.JobID
	X, Y    int
	Name    string // short, as are the others
	Text    string // id and state
	More    string
	Title   string // all of it
	Fill    string // class
	Current bool
	Sure    bool // nothing can have changed meanwhile
}

// graphLine leads from a box to a port, or is a lane by which several do.
type graphLine struct {
	D     string // of the path
	Open  bool   // what is waited for has not ended
	Title string // "" for a lane
}

// graphPort is where lines come to a box that are for the same wish.
type graphPort struct {
	X, Y  int // of the arrow's head
	Label string
	Open  bool
}

// Sizes in the picture. A port's label is written between join and head, where all lines are level.
const (
	boxWidth, boxHeight = 176, 62
	joinWidth           = 46
	curveWidth          = 54
	laneSpace           = 10
	boxSpace            = 18
	graphMargin         = 6
	// maxBoxName and maxBoxText are how many characters fit a line of a box; wider ones are cut by its edge.
	maxBoxName = 19
	maxBoxText = 28
)

// BoxWidth returns the width of a box.
func (graph) BoxWidth() int { return boxWidth }

// BoxHeight returns the height of a box.
func (graph) BoxHeight() int { return boxHeight }

func columnX(c int) int { return graphMargin + c*(boxWidth+curveWidth+joinWidth) }

// drawGraph draws a graph; one without edges is empty.
func drawGraph(g *jobgraph.Graph) graph {
	if len(g.Edges) == 0 {
		return graph{}
	}
	arrows := make([]arrow, len(g.Edges))
	for i, e := range g.Edges {
		arrows[i] = arrow{e.From, e.To}
	}
	d := drawing{of: g, layers: newLayers(len(g.Nodes), g.At, arrows)}
	d.place()
	d.out.Title = fmt.Sprintf("%d jobs that wait for each other, around %s", len(g.Nodes), g.Nodes[g.At].ID)
	d.out.AtX = columnX(d.column[g.At]) + boxWidth/2
	for _, column := range d.columns {
		for _, c := range column {
			if !c.lane {
				d.addBox(c.node)
			}
		}
	}
	for n := range g.Nodes {
		d.addLanes(n)
		d.addEdges(n)
	}
	return d.out
}

// drawing is a graph on its way to become a picture.
type drawing struct {
	of *jobgraph.Graph
	layers
	middle map[int]map[cell]int // by column: y of each cell's middle
	out    graph
}

// place stacks the cells of each column, around the picture's middle.
func (d *drawing) place() {
	d.middle = map[int]map[cell]int{}
	tallest := 0
	for c, column := range d.columns {
		y, middle := 0, map[cell]int{}
		for _, cell := range column {
			h := heightOf(cell)
			middle[cell] = y + h/2
			y += h
		}
		d.middle[c] = middle
		tallest = max(tallest, y)
	}
	for c, column := range d.columns {
		h := 0
		for _, cell := range column {
			h += heightOf(cell)
		}
		for cell := range d.middle[c] {
			d.middle[c][cell] += graphMargin + (tallest-h)/2
		}
	}
	d.out.Width = columnX(len(d.columns)) - curveWidth - joinWidth + graphMargin
	d.out.Height = tallest + 2*graphMargin
}

// heightOf returns the room that a cell takes, with the space around it.
func heightOf(c cell) int {
	if c.lane {
		return laneSpace
	}
	return boxHeight + boxSpace
}

func (d *drawing) addBox(n int) {
	v := &d.of.Nodes[n]
	b := graphBox{
		ID: v.ID, X: columnX(d.column[n]), Y: d.middle[d.column[n]][cell{node: n}] - boxHeight/2,
		Name: short(maxBoxName, v.Name()), Current: n == d.of.At, Fill: "fill-" + v.State, More: moreWords(v),
	}
	state := v.State
	switch {
	case v.Job == nil:
		state, b.Fill = goneWords(v.State), "fill-none"
	case v.Held():
		state, b.Fill = node.Held, "fill-"+node.Held
	}
	b.Sure = v.Ended() || v.Job != nil && v.Job.Durability == node.DurableSite
	b.Text = short(maxBoxText-len(state), v.ID.String()) + " · " + state
	b.Title = d.titleOf(n, state)
	if fill := strings.TrimPrefix(b.Fill, "fill-"); v.Job != nil {
		d.out.States = appendNew(d.out.States, fill)
	}
	d.out.More += v.MoreBefore + v.MoreAfter
	d.out.Boxes = append(d.out.Boxes, b)
}

// goneWords says of a job that is no longer kept how it ended.
func goneWords(state string) string {
	if state == "" || state == node.OutcomeUnknown {
		return "no longer kept"
	}
	return state
}

// moreWords says of what of a node is not drawn.
func moreWords(v *jobgraph.Node) string {
	var parts []string
	if v.MoreBefore > 0 {
		parts = append(parts, count(v.MoreBefore)+" more before")
	}
	if v.MoreAfter > 0 {
		parts = append(parts, count(v.MoreAfter)+" more after")
	}
	return strings.Join(parts, ", ")
}

// titleOf says all of a node in one line, for who points at it, or cannot see the picture.
func (d *drawing) titleOf(n int, state string) string {
	v := &d.of.Nodes[n]
	parts := []string{v.ID.String()}
	if name := v.Name(); name != "" {
		parts = append(parts, short(80, name))
	}
	parts = append(parts, state)
	var names []string
	for _, e := range d.of.Before(n) {
		names = append(names, d.of.Nodes[e.From].ID.String()+" ("+e.When.String()+")")
	}
	if len(names) > 0 {
		parts = append(parts, "after "+strings.Join(names, " "))
	}
	if more := moreWords(v); more != "" {
		parts = append(parts, more)
	}
	return strings.Join(parts, ", ")
}

func appendNew(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}

// addEdges draws the lines that come to a node, and its ports: one for each wish.
func (d *drawing) addEdges(n int) {
	edges := d.of.Before(n)
	var wishesOf []jobspec.When
	open := map[jobspec.When]bool{}
	for when := range jobspec.WhenEach + 1 {
		for _, e := range edges {
			if e.When != when {
				continue
			}
			if len(wishesOf) == 0 || wishesOf[len(wishesOf)-1] != when {
				wishesOf = append(wishesOf, when)
			}
			open[when] = open[when] || !d.of.Nodes[e.From].Ended()
		}
	}
	x, top := columnX(d.column[n]), d.middle[d.column[n]][cell{node: n}]-boxHeight/2
	at := map[jobspec.When]int{}
	for i, when := range wishesOf {
		at[when] = top + boxHeight*(i+1)/(len(wishesOf)+1)
		d.out.Ports = append(d.out.Ports, graphPort{x, at[when], when.String(), open[when]})
	}
	for _, e := range edges {
		d.addLine(e, at[e.When])
	}
}

// addLine draws an edge from its node's box, or from the last lane of it before the port.
func (d *drawing) addLine(e jobgraph.Edge, port int) {
	from, to := &d.of.Nodes[e.From], &d.of.Nodes[e.To]
	last := d.column[e.To]
	line := graphLine{
		D: curve(columnX(last-1)+boxWidth, d.passes(e.From, last-1), last, port, columnX(last)), Open: !from.Ended(),
		Title: fmt.Sprintf("%s after %s, which %s", to.ID, from.ID, wishes[e.When]),
	}
	d.out.Open, d.out.Over = d.out.Open || line.Open, d.out.Over || !line.Open
	d.out.Lines = append(d.out.Lines, line)
}

// addLanes draws the lanes of a node, which its edges share: so a picture has no more lines than edges and cells.
func (d *drawing) addLanes(n int) {
	for c := d.column[n] + 1; c < len(d.columns); c++ {
		y, has := d.middle[c][cell{node: n, lane: true}]
		if !has {
			return
		}
		d.out.Lines = append(d.out.Lines, graphLine{
			D:    curve(columnX(c-1)+boxWidth, d.passes(n, c-1), c, y, columnX(c)+boxWidth),
			Open: !d.of.Nodes[n].Ended(),
		})
	}
}

// passes returns where the edges of a node leave a column: at its box, or by its lane.
func (d *drawing) passes(n, column int) int {
	return d.middle[column][cell{node: n, lane: column != d.column[n]}]
}

// curve leads from a column's right edge to a level piece in the next one.
func curve(x, y, column, next, right int) string {
	join := columnX(column) - joinWidth
	half := join - curveWidth/2
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %dH%d", x, y, half, y, half, next, join, next, right)
}
