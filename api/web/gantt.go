package web

import (
	"fmt"
	"time"
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
	drawn               map[string]bool // ways of drawing, see marks
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
	Hatched    bool // it failed or was lost: seen without colours, too
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
	// crowdHeight is the height of the strip for attempts that have no lane of their own.
	crowdHeight = 4
	// maxColors is how many sites are told apart; all others share one colour.
	maxColors = 8
)

func newGantt(from, to time.Time) gantt {
	if !to.After(from) {
		from = to.Add(-time.Second)
	}
	g := gantt{Width: ganttWidth, Left: ganttLeft, Height: 18, from: from, to: to, colors: map[string]int{}}
	g.Ticks = timeTicks(from, to, ganttLeft, ganttWidth-10)
	return g
}

// x returns a time's place, within the drawing.
func (g *gantt) x(t time.Time) int {
	part := t.Sub(g.from).Seconds() / g.to.Sub(g.from).Seconds()
	return ganttLeft + int(min(max(part, 0), 1)*float64(ganttWidth-10-ganttLeft))
}

// color gives each site a colour, the first ones one of their own.
func (g *gantt) color(site string) int {
	n, ok := g.colors[site]
	if ok {
		return n
	}
	n = min(len(g.colors), maxColors) + 1
	g.colors[site] = n
	if len(g.colors) <= maxColors {
		g.Owners = append(g.Owners, owner{site, n})
	} else if len(g.colors) == maxColors+1 {
		g.Owners = append(g.Owners, owner{"other sites", n})
	}
	return n
}

// add appends a row with at most as many lanes as cores. Attempts come by start.
// Those that find no lane, and the short ones, are drawn together below as what
// was occupied, in columns so many units wide.
func (g *gantt) add(name, link string, cores int, attempts, short []Attempt, column int) {
	row := ganttRow{Name: name, Link: link, Y: g.Height}
	taken := lanesOf(cores)
	for i := range attempts {
		a := &attempts[i]
		end := g.end(a)
		lane, ok := taken.place(a.Started, end)
		if !ok {
			short = append(short, *a)
			continue
		}
		row.Bars = append(row.Bars, g.bar(a, end, row.Y+rowPadding+lane*laneHeight))
	}
	row.H = 2*rowPadding + max(1, len(taken.free))*laneHeight
	if row.More = len(short); row.More > 0 {
		y := row.Y + row.H - rowPadding
		if len(taken.free) == 0 {
			y -= laneHeight
		}
		row.Bars = append(row.Bars, g.crowd(short, y, max(1, column))...)
		row.H += crowdHeight
	}
	row.Middle = row.Y + row.H/2 + 4
	g.Height += row.H
	g.Rows = append(g.Rows, row)
}

// bar draws one attempt.
func (g *gantt) bar(a *Attempt, end time.Time, y int) ganttBar {
	x, how := g.x(a.Started), endOf(a)
	of := a.Job.Site
	if g.byExecutor {
		of = a.Site
	}
	g.useClass(how)
	link := ""
	if a.known() {
		link = "/jobs/" + a.Job.String()
	}
	return ganttBar{
		X: x, Y: y, W: max(2, g.x(end)-x), H: laneHeight - 2, Class: fmt.Sprintf("series-%d %s", g.color(of), how),
		Title: g.title(a, end), Link: link, Hatched: how == broke,
	}
}

// known reports whether it is told which job it is.
func (a *Attempt) known() bool { return a.Job.Num > 0 }

// end returns when an attempt ended, or the drawing does.
func (g *gantt) end(a *Attempt) time.Time {
	if a.Ended.IsZero() {
		return g.to
	}
	return a.Ended
}

// crowd draws when at least one of some attempts ran.
func (g *gantt) crowd(attempts []Attempt, y, column int) (bars []ganttBar) {
	occupied := make([]int, (ganttWidth-ganttLeft)/column+1) // attempts begun less those ended, then running
	last := len(occupied) - 2
	for i := range attempts {
		from := min((g.x(attempts[i].Started)-ganttLeft)/column, last)
		occupied[from]++
		occupied[min(max(from, (g.x(g.end(&attempts[i]))-ganttLeft)/column), last)+1]--
	}
	g.useClass(crowded)
	title := count(len(attempts)) + " more, too short or too many to draw one by one"
	for i, n := 0, 0; i <= last; i++ {
		before := n
		if n += occupied[i]; n <= 0 {
			continue
		}
		if before <= 0 {
			bars = append(bars, ganttBar{
				X: ganttLeft + i*column, Y: y, H: crowdHeight - 1, Class: crowded,
				Title: title,
			})
		}
		bars[len(bars)-1].W += column
	}
	return bars
}

func (g *gantt) title(a *Attempt, end time.Time) string {
	state := a.Outcome
	switch {
	case a.Ended.IsZero():
		state = "running"
	case state == "":
		state = "ended"
	}
	if !a.known() {
		return fmt.Sprintf("another user's of %s, at %s: %s, %s", a.Job.Site, a.Site, state, took(end.Sub(a.Started)))
	}
	return fmt.Sprintf("%s/%d attempt %d at %s: %s, %s", a.Job, a.Task, a.Attempt, a.Site, state, took(end.Sub(a.Started)))
}
