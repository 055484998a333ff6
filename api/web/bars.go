package web

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

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

const (
	// barWidth is what a whole bar measures.
	barWidth = 240
	// leastWidth is what a part above 0 takes at least, however small it is: some
	// three points in the bar of a list.
	leastWidth = 6
	// leastOfPage is that of a bar as wide as a page.
	leastOfPage = 2
)

// stack puts parts side by side in a bar whose width stands for whole. A part above 0 is
// always visible, and parts that add up to whole fill the bar.
func stack(title string, whole int64, parts ...amount) bar {
	return stackAtLeast(leastWidth, title, whole, parts)
}

// stackAtLeast is stack with another least width.
func stackAtLeast(least int, title string, whole int64, parts []amount) bar {
	b := bar{Width: barWidth, Height: 14, Title: title}
	x := 0
	for i, w := range widths(least, whole, parts) {
		if w > 0 {
			b.Parts = append(b.Parts, part{x, w, parts[i].Class, parts[i].Title})
		}
		x += w
	}
	return b
}

// widths shares the bar among amounts, in proportion, but at least so much to
// each above 0; that comes out of what the bar has left, then out of the widest.
func widths(least int, whole int64, parts []amount) []int {
	out := make([]int, len(parts))
	sum := int64(0)
	for _, p := range parts {
		sum += max(0, p.N)
	}
	if whole = max(whole, sum); whole == 0 {
		return out
	}
	at, passed := 0, int64(0)
	for i, p := range parts {
		passed += max(0, p.N)
		end := int(float64(passed) / float64(whole) * barWidth) // of sums: rounding does not add up
		if out[i] = end - at; p.N > 0 {
			out[i] = max(out[i], least)
		}
		at = end
	}
	shrink(out)
	return out
}

// shrink takes from the widest until all fit the bar.
func shrink(widths []int) {
	for {
		over, widest := -barWidth, 0
		for i, w := range widths {
			over += w
			if w > widths[widest] {
				widest = i
			}
		}
		if over <= 0 {
			return
		}
		widths[widest]--
	}
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
func progress(counts map[string]uint32) bar { return progressAtLeast(leastWidth, counts) }

func progressAtLeast(least int, counts map[string]uint32) bar {
	whole := int64(0)
	for _, n := range counts {
		whole += int64(n)
	}
	var parts []amount
	for _, state := range taskStates {
		n := counts[state]
		parts = append(parts, amount{int64(n), "fill-" + state, count(n) + " " + state})
	}
	return stackAtLeast(least, "tasks", whole, parts)
}

// taskStates are in the order in which a bar shows them.
var taskStates = []string{
	"succeeded", "failed", "lost", "cancelled", "running", "stopping", "assigned", "queued", node.Held, "withdrawn",
}

// legendStates are those that the bars of a list have colours for.
var legendStates = []string{"succeeded", "failed", "lost", "cancelled", "running", "assigned", "queued", "withdrawn"}
