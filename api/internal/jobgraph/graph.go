// Package jobgraph finds the jobs around one job, within bounds: those that it waits for or has named, those that wait
// for it, and theirs in turn. The API answers with it, and the job's page draws it. It asks the broker through Source
// alone: it never imports a backend, the core or what serves HTTP.
package jobgraph

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Bounds of a graph.
type Bounds struct {
	Depth int // how many steps before and after the job are gone
	Nodes int // the job among them
	Fan   int // how many steps are gone from one node to each side
}

// Bounds of every graph.
const (
	MaxDepth = 100
	MaxNodes = 200
	MaxFan   = 100
)

// Bounds of a graph that asks for none.
const (
	DefaultDepth = 8
	DefaultNodes = 50
	DefaultFan   = 20
)

// Side is where a node stands to the job that the graph is about.
type Side int

// The sides.
const (
	Before Side = iota - 1
	Itself
	After
)

// Graph is some jobs that wait for each other.
type Graph struct {
	// Nodes by number. Invariant: all are of one site.
	Nodes []Node
	// Edges by From and To. Invariant: From is less than To, for a job names older ones only.
	Edges []Edge
	// At is the job's place in Nodes.
	At int
}

// Node is one job of a graph.
type Node struct {
	ID command.JobID
	// Job is nil for one that is no longer kept.
	Job *node.Job
	// State of the job; of one that is no longer kept, what was seen of its end: node.OutcomeUnknown, or "".
	State string
	Side  Side
	// MoreBefore is how many jobs it names that are no nodes, and MoreAfter how many that are none wait for it, or have
	// waited, as far as is remembered. Those that who asks may not see are among them.
	MoreBefore, MoreAfter int
}

// Ended reports whether the job has ended, as far as that is known.
func (n *Node) Ended() bool {
	switch n.State {
	case "queued", "running", "withdrawn":
		return false
	}
	return true
}

// Held reports whether the job, or tasks of it, are held.
func (n *Node) Held() bool { return n.Job != nil && n.Job.Counts[node.Held] > 0 }

// Name returns the job's name, "" if it has none or is no longer kept.
func (n *Node) Name() string {
	if n.Job == nil {
		return ""
	}
	return n.Job.Spec.Name
}

// Edge says that the job at To waits for the one at From, or has waited.
type Edge struct {
	From, To int
	When     jobspec.When
}

// Before returns the edges that lead to a node, by From.
func (g *Graph) Before(n int) (list []Edge) {
	for _, e := range g.Edges {
		if e.To == n {
			list = append(list, e)
		}
	}
	return list
}
