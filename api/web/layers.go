package web

import (
	"cmp"
	"slices"
)

// layers has the nodes of a graph in columns, so that each edge leads from left to right. An edge that passes columns
// has a lane in each of them, which it shares with the others of its node.
type layers struct {
	column  []int // of each node
	columns [][]cell
}

// cell is the box of a node in its column, or the lane for its edges in a later one.
type cell struct {
	node int
	lane bool
}

// arrow is an edge, between nodes by their numbers. Its from is less than its to.
type arrow struct{ from, to int }

// link is between two cells of neighbouring columns.
type link struct{ left, right cell }

// sweeps is how often the columns are arranged from left to right and back.
const sweeps = 4

// newLayers arranges n nodes around one of them, which is in no edge between a lower and a higher one's sides: what
// stands before it, by any way, has a lower number, and what stands behind it a higher one.
func newLayers(n, at int, arrows []arrow) layers {
	l := layers{column: columnsOf(n, at, arrows)}
	l.columns = make([][]cell, 1+slices.Max(l.column))
	links := make([][]link, len(l.columns)) // to the next column
	for i := range n {
		l.put(cell{node: i}, l.column[i])
	}
	for i := range n {
		l.connect(i, arrows, links)
	}
	for range sweeps {
		for c := 1; c < len(l.columns); c++ {
			l.arrange(c, c-1, links[c-1])
		}
		for c := len(l.columns) - 2; c >= 0; c-- {
			l.arrange(c, c+1, links[c])
		}
	}
	return l
}

// columnsOf returns each node's column: as near to the one in the middle as its edges allow.
func columnsOf(n, at int, arrows []arrow) []int {
	column := make([]int, n)
	for i := range column {
		column[i] = cmp.Compare(i, at)
	}
	from, to := make([][]int, n), make([][]int, n)
	for _, a := range arrows {
		from[a.to], to[a.from] = append(from[a.to], a.from), append(to[a.from], a.to)
	}
	for i := at - 1; i >= 0; i-- {
		for _, next := range to[i] {
			if next <= at {
				column[i] = min(column[i], column[next]-1)
			}
		}
	}
	for i := at + 1; i < n; i++ {
		for _, last := range from[i] {
			if last >= at {
				column[i] = max(column[i], column[last]+1)
			}
		}
	}
	first := slices.Min(column)
	for i := range column {
		column[i] -= first
	}
	return column
}

func (l *layers) put(c cell, column int) { l.columns[column] = append(l.columns[column], c) }

// connect makes the lanes of a node, and its links.
func (l *layers) connect(n int, arrows []arrow, links [][]link) {
	far := 0
	for _, a := range arrows {
		if a.from == n {
			far = max(far, l.column[a.to])
		}
	}
	at := cell{node: n}
	for c := l.column[n]; c < far; c++ {
		for _, a := range arrows {
			if a.from == n && l.column[a.to] == c+1 {
				links[c] = append(links[c], link{at, cell{node: a.to}})
			}
		}
		if c+1 < far {
			lane := cell{node: n, lane: true}
			l.put(lane, c+1)
			links[c] = append(links[c], link{at, lane})
			at = lane
		}
	}
}

// arrange sorts a column by where its cells' neighbours in another one are, on average.
func (l *layers) arrange(column, other int, links []link) {
	place := map[cell]int{}
	for i, c := range l.columns[other] {
		place[c] = i
	}
	sum, n := map[cell]int{}, map[cell]int{}
	for _, k := range links {
		mine, its := k.left, k.right
		if other < column {
			mine, its = k.right, k.left
		}
		sum[mine], n[mine] = sum[mine]+place[its], n[mine]+1
	}
	const scale = 1000
	mean := map[cell]int{}
	for i, c := range l.columns[column] {
		mean[c] = i * scale
		if n[c] > 0 {
			mean[c] = sum[c] * scale / n[c]
		}
	}
	slices.SortStableFunc(l.columns[column], func(a, b cell) int { return cmp.Compare(mean[a], mean[b]) })
}
