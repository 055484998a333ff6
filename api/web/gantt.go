package web

import (
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// gantt is rows of bars over time, drawn by the template "gantt". Coordinates
// are in units of the drawing.
type gantt struct {
	Width, Height, Left int
	Rows                []ganttRow
	Ticks               []tick
	Owners              []owner // whose colours are used
	from, to            time.Time
	byExecutor          bool // colours are those of executors, not of owners
	colors              map[string]int
}

type ganttRow struct {
	Name   string
	Link   string
	Y, H   int
	Middle int // of its name
	Bars   []ganttBar
	More   int // that are not drawn one by one
}

type ganttBar struct {
	X, Y, W, H int
	Class      string
	Title      string
	Link       string
}

type owner struct {
	Name  string
	Color int
}

const (
	ganttWidth = 960
	ganttLeft  = 130
	laneHeight = 9
	rowPadding = 5
	maxLanes   = 12 // of one row
	maxColors  = 12
)

func newGantt(from, to time.Time) gantt {
	if !to.After(from) {
		from = to.Add(-time.Second)
	}
	g := gantt{Width: ganttWidth, Left: ganttLeft, Height: 18, from: from, to: to, colors: map[string]int{}}
	g.Ticks = timeTicks(from, to, ganttLeft, ganttWidth-10)
	return g
}

// x is a time's place, within the drawing.
func (g *gantt) x(t time.Time) int {
	part := t.Sub(g.from).Seconds() / g.to.Sub(g.from).Seconds()
	return ganttLeft + int(min(max(part, 0), 1)*float64(ganttWidth-10-ganttLeft))
}

// color gives each owner a colour, the first ones one of their own.
func (g *gantt) color(site string) int {
	n, ok := g.colors[site]
	if !ok {
		n = len(g.colors)%maxColors + 1
		g.colors[site] = n
		if len(g.colors) <= maxColors {
			g.Owners = append(g.Owners, owner{site, n})
		}
	}
	return n
}

// add appends a row. Attempts come by start; each takes the first lane that is
// free by then, as cores would. Those that find none, and the short ones, are
// drawn together as what was occupied, in columns so many units wide.
func (g *gantt) add(name, link string, attempts, short []Attempt, column int) {
	row := ganttRow{Name: name, Link: link, Y: g.Height}
	var free []int // per lane, from which x on
	for i := range attempts {
		a := &attempts[i]
		end := a.Ended
		if end.IsZero() {
			end = g.to
		}
		x := g.x(a.Started)
		w := max(2, g.x(end)-x)
		lane := 0
		for lane < len(free) && free[lane] > x {
			lane++
		}
		if lane == maxLanes {
			short = append(short, *a)
			continue
		}
		if lane == len(free) {
			free = append(free, 0)
		}
		free[lane] = x + w
		row.Bars = append(row.Bars, ganttBar{
			X: x, Y: row.Y + rowPadding + lane*laneHeight, W: w, H: laneHeight - 2, Class: g.class(a), Title: g.title(a, end),
			Link: "/jobs/" + a.Job.String(),
		})
	}
	lanes := max(1, len(free))
	if row.More = len(short); row.More > 0 {
		lanes = len(free) + 1
		row.Bars = append(row.Bars, g.crowd(short, row.Y+rowPadding+len(free)*laneHeight, max(1, column))...)
	}
	row.H = 2*rowPadding + lanes*laneHeight
	row.Middle = row.Y + row.H/2 + 4
	g.Height += row.H
	g.Rows = append(g.Rows, row)
}

// crowd draws when at least one of some attempts ran.
func (g *gantt) crowd(attempts []Attempt, y, column int) (bars []ganttBar) {
	occupied := make([]int, (ganttWidth-ganttLeft)/column+1) // attempts begun less those ended, then running
	last := len(occupied) - 2
	for i := range attempts {
		end := attempts[i].Ended
		if end.IsZero() {
			end = g.to
		}
		from := min((g.x(attempts[i].Started)-ganttLeft)/column, last)
		occupied[from]++
		occupied[min(max(from, (g.x(end)-ganttLeft)/column), last)+1]--
	}
	title := count(len(attempts)) + " more, too short or too many to draw one by one"
	for i, n := 0, 0; i <= last; i++ {
		before := n
		if n += occupied[i]; n <= 0 {
			continue
		}
		if before <= 0 {
			bars = append(bars, ganttBar{X: ganttLeft + i*column, Y: y, H: laneHeight - 2, Class: "crowd", Title: title})
		}
		bars[len(bars)-1].W += column
	}
	return bars
}

func (g *gantt) class(a *Attempt) string {
	of := a.Job.Site
	if g.byExecutor {
		of = a.Site
	}
	class := fmt.Sprintf("series-%d", g.color(of))
	switch {
	case a.Ended.IsZero():
		class += " runs"
	case a.Outcome != fsm.EndSucceeded.String() && a.Outcome != "":
		class += " broke"
	}
	return class
}

func (g *gantt) title(a *Attempt, end time.Time) string {
	state := a.Outcome
	switch {
	case a.Ended.IsZero():
		state = "running"
	case state == "":
		state = "ended"
	}
	return fmt.Sprintf("%s/%d attempt %d at %s: %s, %s", a.Job, a.Task, a.Attempt, a.Site, state, took(end.Sub(a.Started)))
}

// maxAttempts bounds the earlier attempts in the drawing of a job.
const maxAttempts = 200

// taskGantt draws the attempts of some tasks of one job: the last ones, and the
// earlier ones that are remembered.
func (p *Pages) taskGantt(id fsm.JobID, tasks []node.Task) gantt {
	byTask := map[uint32][]Attempt{}
	if p.cfg.History != nil && len(tasks) > 0 {
		for _, a := range p.cfg.History.EarlierOf(id, tasks[0].Index, tasks[len(tasks)-1].Index+1, maxAttempts) {
			byTask[a.Task] = append(byTask[a.Task], a)
		}
	}
	var rows [][]Attempt
	for _, t := range tasks {
		if row := attemptsOf(id, t, byTask[t.Index]); len(row) > 0 {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return gantt{}
	}
	g := newGantt(span(rows, p.cfg.Now()))
	g.byExecutor = true
	for _, row := range rows {
		last := row[len(row)-1]
		g.add(fmt.Sprintf("%d · %s", last.Task, last.Site), "", row, nil, 1)
	}
	return g
}

// attemptsOf are a task's attempts by start.
func attemptsOf(id fsm.JobID, t node.Task, earlier []Attempt) (row []Attempt) {
	for _, a := range earlier {
		if a.Attempt < t.Attempt || t.StartedAt.IsZero() {
			row = append(row, a)
		}
	}
	if !t.StartedAt.IsZero() {
		row = append(row, Attempt{
			Job: id, Task: t.Index, Attempt: t.Attempt, Site: t.Site, Started: t.StartedAt, Ended: t.EndedAt, Outcome: t.State,
		})
	}
	slices.SortFunc(row, func(a, b Attempt) int { return a.Started.Compare(b.Started) })
	return row
}

// span is the time that rows take.
func span(rows [][]Attempt, now time.Time) (from, to time.Time) {
	from = now
	for _, a := range slices.Concat(rows...) {
		if a.Ended.IsZero() {
			a.Ended = now
		}
		if a.Started.Before(from) {
			from = a.Started
		}
		if a.Ended.After(to) {
			to = a.Ended
		}
	}
	return from, to
}
