package chart

import (
	"fmt"
	"io"

	"github.com/cloudshare/cloudshare/node/sim"
)

// maxBars bounds a drawing; later tasks are left out, and the drawing says so.
const maxBars = 5000

// Gantt draws who ran what where and when: a row for each core, coloured by
// owner, background in grey.
func Gantt(dst io.Writer, format Format, c *sim.Case, o *sim.Outcome, title string) error {
	const left, top, row = 80.0, 40.0, 18.0
	rows, first := 0, make([]int, len(c.Cores))
	for i, n := range c.Cores {
		first[i] = rows
		rows += int(min(n, maxBars))
	}
	end := int64(1)
	order := o.Order[:min(len(o.Order), maxBars)]
	for _, i := range order {
		end = max(end, o.Start[i]+c.Tasks[i].Run)
	}
	scale := 800 / float64(end)
	s, err := New(dst, format, int(left+830), int(top+row*float64(rows)+60), title)
	if err != nil {
		return err
	}
	s.Text(left, 20, "start", title)
	if left := len(o.Order) - len(order); left > 0 {
		s.Text(830, 20, "end", fmt.Sprintf("the first %d tasks; %d more are not drawn", maxBars, left))
	}
	lanes := newLanes(c)
	for _, i := range order {
		t := &c.Tasks[i]
		fill := Palette[t.Site%len(Palette)]
		if t.Background {
			fill = "#bbbbbb"
		}
		for _, core := range lanes.occupy(o.Site[i], o.Start[i], t) {
			y := top + row*float64(first[o.Site[i]]+core)
			s.Rect(left+float64(o.Start[i])*scale, y, float64(t.Run)*scale, row-2, fill,
				fmt.Sprintf("job %d/%d of %s at %s: released %d, ran %d–%d", t.Job, t.Index, sim.SiteName(t.Site), sim.SiteName(o.Site[i]), t.Release, o.Start[i],
					o.Start[i]+t.Run))
			if float64(t.Run)*scale > 40 {
				s.Text(left+(float64(o.Start[i])+float64(t.Run)/2)*scale, y+row-6, "middle",
					fmt.Sprintf("%s/%d", ownerMark(t.Site), t.Index+1))
			}
		}
	}
	for i := range c.Cores {
		y := top + row*float64(first[i])
		s.Line(left-70, y-1, left+810, y-1)
		s.Text(left-8, y+row-6, "end", sim.SiteName(i))
		s.Text(left+float64(i)*68+14, top+row*float64(rows)+40, "start", sim.SiteName(i))
		s.Rect(left+float64(i)*68, top+row*float64(rows)+30, 10, 10, Palette[i%len(Palette)], sim.SiteName(i))
	}
	s.Text(left-8, top+row*float64(rows)+40, "end", "tasks of")
	s.Text(left, top+row*float64(rows)+16, "start", "0 s")
	s.Text(left+800, top+row*float64(rows)+16, "end", fmt.Sprintf("%d s", end))
	return s.End()
}

// ownerMark returns a site's letter.
func ownerMark(site int) string { return string(rune('A' + site)) }

// lanes says on which of a site's cores a task is drawn: the lowest free ones.
type lanes [][]int64 // by site and core: when it is free

func newLanes(c *sim.Case) lanes {
	var l lanes
	for _, n := range c.Cores {
		l = append(l, make([]int64, min(n, maxBars)))
	}
	return l
}

func (l lanes) occupy(site int, start int64, t *sim.Task) (cores []int) {
	for core, free := range l[site] {
		if free <= start && int64(len(cores)) < t.Width {
			l[site][core] = start + t.Run
			cores = append(cores, core)
		}
	}
	return cores
}
