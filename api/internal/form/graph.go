package form

import (
	"cmp"

	"github.com/cloudshare/cloudshare/api/internal/jobgraph"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

var sideNames = map[jobgraph.Side]string{
	jobgraph.Before: "before", jobgraph.Itself: "itself", jobgraph.After: "after",
}

// Graph returns the form of a graph.
func Graph(g *jobgraph.Graph) wire.JobGraph {
	out := wire.JobGraph{
		Job: g.Nodes[g.At].ID.String(), Nodes: make([]wire.GraphNode, 0, len(g.Nodes)),
		Edges: make([]wire.GraphEdge, 0, len(g.Edges)),
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		out.Nodes = append(out.Nodes, wire.GraphNode{
			Job: n.ID.String(), Name: n.Name(), State: cmp.Or(n.State, node.OutcomeUnknown), Held: n.Held(),
			Gone: n.Job == nil, Side: sideNames[n.Side], MoreBefore: n.MoreBefore, MoreAfter: n.MoreAfter,
		})
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, wire.GraphEdge{
			Job: g.Nodes[e.To].ID.String(), After: g.Nodes[e.From].ID.String(), When: e.When.String(),
		})
	}
	return out
}
