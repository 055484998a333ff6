package web

import "github.com/cloudshare/cloudshare/fsm"

// bar is a stack of parts beside each other, drawn by the template "bar".
type bar struct {
	Width, Height int
	Title         string
	Parts         []part
}

// part is one rectangle; X and W are in the bar's own units.
type part struct {
	X, W  int
	Class string
	Title string
}

// barWidth is what a whole bar measures.
const barWidth = 240

// stack lays parts beside each other, whole being the bar's width. What is
// there at all is seen: a part above 0 takes at least one unit.
func stack(title string, whole int64, parts ...amount) bar {
	b := bar{Width: barWidth, Height: 14, Title: title}
	x := 0
	for _, p := range parts {
		if p.N <= 0 || whole <= 0 {
			continue
		}
		w := min(max(1, int(p.N*barWidth/whole)), barWidth-x)
		if w > 0 {
			b.Parts = append(b.Parts, part{x, w, p.Class, p.Title})
		}
		x += w
	}
	return b
}

// amount is a part before it has a place.
type amount struct {
	N     int64
	Class string
	Title string
}

// siteBar shows what a site's cores do: its own work, other work of the
// federation, offered and free, kept back.
func siteBar(v fsm.SiteView) bar {
	home, lent := v.Home.MilliCPU, v.Assigned.MilliCPU
	free := max(0, v.Exposed.MilliCPU-lent)
	whole := max(v.Capacity.MilliCPU, home+lent+free)
	return stack(v.ID+": cores", whole,
		amount{lent, "fill-lent", coresWords(lent) + " at work for the federation"},
		amount{home, "fill-home", coresWords(home) + " at work for its own jobs"},
		amount{free, "fill-free", coresWords(free) + " offered and free"},
		amount{whole - home - lent - free, "fill-kept", coresWords(whole-home-lent-free) + " kept back"})
}

// progress shows a job's tasks.
func progress(counts map[string]uint32) bar {
	whole := int64(0)
	for _, n := range counts {
		whole += int64(n)
	}
	var parts []amount
	for _, state := range taskStates {
		n := counts[state]
		parts = append(parts, amount{int64(n), "fill-" + state, count(n) + " " + state})
	}
	return stack("tasks", whole, parts...)
}

// taskStates are in the order in which a bar shows them.
var taskStates = []string{
	"succeeded", "failed", "lost", "cancelled", "running", "stopping", "assigned", "queued", "withdrawn",
}
