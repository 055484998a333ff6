package jobgraph

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Source is what is asked. It shows who asks what they may see: of a job that they may not, the error wraps
// node.ErrNotOwner.
type Source interface {
	Job(ctx context.Context, id command.JobID) (node.Job, error)
	// Dependencies returns what a job of this site waits for, and the first most of those that wait for it.
	Dependencies(ctx context.Context, id command.JobID, most int) (node.Dependencies, error)
}

// Find returns the graph around a job, nearest jobs first. What each node costs is one question for the job and one
// for what it waits for, however many wait. Of another site's job there is that one alone. The error is the job's, or
// the context's.
func Find(ctx context.Context, s Source, id command.JobID, b Bounds) (Graph, error) {
	w := &walk{ctx: ctx, source: s, bounds: b, places: map[command.JobID]int{}}
	if err := w.visit(step{id: id}, Itself); err != nil {
		return Graph{}, err
	}
	for w.goesOn() {
		// In turns, so that neither side takes all of the room.
		if err := errors.Join(w.next(Before), w.next(After)); err != nil {
			return Graph{}, err
		}
	}
	return w.graph(), nil
}

// walk is one way through the jobs, breadth first to both sides.
type walk struct {
	ctx    context.Context //nolint:containedctx // one call's
	source Source
	bounds Bounds
	found  []visited
	// places of jobs in found; hidden for those that are not shown.
	places        map[command.JobID]int
	before, after []step
	asked         int
}

const hidden = -1

// step leads to a job.
type step struct {
	id    command.JobID
	depth int
	state string // in which it has ended, as it was seen
}

// visited is a node with all that it names and who waits for it.
type visited struct {
	Node
	names     []named
	all, past int // how many wait for it, and have waited for it
}

// maxAsked bounds the jobs that are asked for, in those that a graph may have: some are not shown, or no longer kept.
const maxAsked = 4

func (w *walk) goesOn() bool {
	return len(w.found) < w.bounds.Nodes && w.asked < maxAsked*w.bounds.Nodes && len(w.before)+len(w.after) > 0
}

// next takes the next step to a side, if there is one and room for it.
func (w *walk) next(side Side) error {
	queue := &w.before
	if side == After {
		queue = &w.after
	}
	if len(*queue) == 0 || len(w.found) >= w.bounds.Nodes {
		return nil
	}
	s := (*queue)[0]
	*queue = (*queue)[1:]
	if _, known := w.places[s.id]; known {
		return nil
	}
	return w.visit(s, side)
}

// visit makes a node of a job, unless who asks may not see it, and notes where to go from there.
func (w *walk) visit(s step, side Side) error {
	w.asked++
	v := visited{Node: Node{ID: s.id, State: s.state, Side: side}}
	job, err := w.source.Job(w.ctx, s.id)
	switch {
	case side == Itself && err != nil:
		return err
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case errors.Is(err, node.ErrNotOwner), err != nil && side == After: // of what is no longer kept no edge is known
		w.places[s.id] = hidden
		return nil
	case err == nil: // else it is no longer kept
		v.Job, v.State = &job, job.State
	}
	d, err := w.source.Dependencies(w.ctx, s.id, w.bounds.Fan)
	if err != nil {
		return err
	}
	v.names, v.all, v.past = namesOf(&v.Node, d.On), d.All, d.FollowedAll
	w.places[s.id] = len(w.found)
	w.found = append(w.found, v)
	if s.depth < w.bounds.Depth {
		w.plan(&v, s.depth+1, append(d.Waiting, d.Followed...))
	}
	return nil
}

// namesOf returns the jobs that a node names, those first whose end was not seen. What it waits for no more stands in
// its spec alone.
func namesOf(n *Node, on []node.Dependency) []named {
	var list []named
	for _, d := range on {
		list = append(list, named{d, d.When == jobspec.WhenEach || d.State == ""})
	}
	slices.SortStableFunc(list, func(a, b named) int { return cmp.Compare(a.place(), b.place()) })
	if n.Job != nil {
		for _, d := range n.Job.Spec.After {
			if !slices.ContainsFunc(on, func(o node.Dependency) bool { return o.Job == d.Job }) {
				list = append(list, named{Dependency: node.Dependency{Job: d.Job, When: d.When}})
			}
		}
	}
	return slices.DeleteFunc(list, func(d named) bool { return d.Job.Site != n.ID.Site || d.Job.Num >= n.ID.Num })
}

// named is a job that another one names.
type named struct {
	node.Dependency
	waits bool // counts among those that wait for it
}

func (d *named) place() int {
	if d.State == "" {
		return 0
	}
	return 1
}

// plan notes the steps from a node: to what it names if it stands before the job, to what waits for it, or has waited,
// if behind.
func (w *walk) plan(v *visited, depth int, waiting []command.JobID) {
	if v.Side != After {
		for _, d := range v.names[:min(len(v.names), w.bounds.Fan)] {
			w.before = append(w.before, step{d.Job, depth, d.State})
		}
	}
	if v.Side != Before {
		for _, id := range waiting[:min(len(waiting), w.bounds.Fan)] {
			w.after = append(w.after, step{id: id, depth: depth})
		}
	}
}
