package jobgraph

import (
	"cmp"
	"slices"
)

// graph makes a graph of what was found: each edge between two nodes, and counts of what is left out.
func (w *walk) graph() Graph {
	root := w.found[0].ID
	slices.SortFunc(w.found, func(a, b visited) int { return cmp.Compare(a.ID.Num, b.ID.Num) })
	for i := range w.found {
		w.places[w.found[i].ID] = i
	}
	g := Graph{At: w.places[root], Nodes: make([]Node, len(w.found))}
	waiting, past := make([]int, len(w.found)), make([]int, len(w.found)) // nodes that wait for each, and that have
	for to := range w.found {
		v := &w.found[to]
		v.MoreBefore = len(v.names)
		for _, d := range v.names {
			from, known := w.places[d.Job]
			if !known || from == hidden {
				continue
			}
			g.Edges = append(g.Edges, Edge{from, to, d.When})
			v.MoreBefore--
			if d.waits {
				waiting[from]++
			} else {
				past[from]++
			}
		}
	}
	slices.SortFunc(g.Edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for i := range w.found {
		n := w.found[i].Node
		n.MoreAfter = max(0, w.found[i].all-waiting[i]) + max(0, w.found[i].past-past[i])
		g.Nodes[i] = n
	}
	return g
}
