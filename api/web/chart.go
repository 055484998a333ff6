package web

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// chart is lines over time, drawn by the template "chart". Coordinates are in
// units of the drawing.
type chart struct {
	Width, Height, Left, Top, Bottom int
	Lines                            []line
	YTicks, XTicks                   []tick
	from, to                         time.Time
	points                           [][]point
}

type point struct {
	at time.Time
	n  float64
}

// line is one site's; Color is its class's number, from 1.
type line struct {
	Name   string
	Points string
	X, Y   int // of its last point
	Color  int
}

// tick is a mark on an axis.
type tick struct {
	At    int
	Label string
	Zero  bool
}

func newChart(from, to time.Time) chart {
	if !to.After(from) {
		from = to.Add(-time.Minute)
	}
	return chart{Width: 900, Height: 260, Left: 80, Top: 12, Bottom: 232, from: from, to: to}
}

func (c *chart) add(name string, points []point) {
	c.Lines = append(c.Lines, line{Name: name, Color: len(c.Lines) + 1})
	c.points = append(c.points, points)
}

// finish lays out axes and lines once all lines are known.
func (c *chart) finish() {
	lo, hi := 0.0, 0.0
	for _, p := range slices.Concat(c.points...) {
		lo, hi = min(lo, p.n), max(hi, p.n)
	}
	if lo == hi {
		hi = 1
	}
	step := niceStep((hi - lo) / 4)
	lo, hi = math.Floor(lo/step)*step, math.Ceil(hi/step)*step
	y := func(n float64) float64 { return float64(c.Bottom) - (n-lo)/(hi-lo)*float64(c.Bottom-c.Top) }
	for i := range int(math.Round((hi-lo)/step)) + 1 {
		n := lo + float64(i)*step
		zero := math.Abs(n) < step/2
		if zero {
			n = 0
		}
		c.YTicks = append(c.YTicks, tick{int(y(n)), tickWords(n, step), zero})
	}
	c.XTicks = timeTicks(c.from, c.to, c.Left, c.Width-10)
	for i, points := range c.points {
		c.Lines[i].Points = c.polyline(points, y)
		if n := len(points); n > 0 {
			c.Lines[i].X, c.Lines[i].Y = int(c.x(points[n-1].at)), int(y(points[n-1].n))
		}
	}
}

// x returns a time's place.
func (c *chart) x(t time.Time) float64 {
	return float64(c.Left) + t.Sub(c.from).Seconds()/c.to.Sub(c.from).Seconds()*float64(c.Width-10-c.Left)
}

func (c *chart) polyline(points []point, y func(float64) float64) string {
	var b strings.Builder
	for _, p := range points {
		b.WriteString(strconv.FormatFloat(c.x(p.at), 'f', 1, 64) + "," + strconv.FormatFloat(y(p.n), 'f', 1, 64) + " ")
	}
	return strings.TrimSpace(b.String())
}

// niceStep returns 1, 2 or 5 times a power of ten, at least n.
func niceStep(n float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(n)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= n {
			return m * power
		}
	}
	return 10 * power
}

// tickWords has as many decimals as the step needs.
func tickWords(n, step float64) string {
	if step >= 1e6 || step < 1e-4 {
		return words4(n)
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step))))
	return strconv.FormatFloat(n, 'f', decimals, 64)
}

// tickSteps are distances between marks of time.
var tickSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute,
	5 * time.Minute, 10 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour,
}

// timeTicks marks round times between from and to on the units left to right.
func timeTicks(from, to time.Time, left, right int) []tick {
	whole := to.Sub(from)
	step := tickSteps[len(tickSteps)-1]
	for _, s := range slices.Backward(tickSteps) {
		if whole/s <= 7 {
			step = s
		}
	}
	form := "15:04"
	if step < time.Minute {
		form = "15:04:05"
	}
	var out []tick
	for t := from.UTC().Truncate(step).Add(step); !t.After(to) && len(out) < 12; t = t.Add(step) {
		x := left + int(float64(right-left)*t.Sub(from).Seconds()/whole.Seconds())
		if x < right-14 { // a label has room
			out = append(out, tick{At: x, Label: t.Format(form)})
		}
	}
	return out
}
