package web

import (
	"context"
	"slices"

	"github.com/cloudshare/cloudshare/api/internal/jobgraph"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// maxAwaited is how many of the jobs are shown that wait for one.
const maxAwaited = 50

// waitRow is a job before or after the one that is shown.
type waitRow struct {
	ID          command.JobID
	Name, State string
	Wish        string // how it is to end
}

// dependencies draws the jobs around one, and lists those next to it: what it waits for, also when it has begun since,
// and what waits for it. What cannot be had is left out: the page shows the job all the same.
func (p *Pages) dependencies(ctx context.Context, job *node.Job, v *jobView) {
	if v.Outline {
		return
	}
	d, err := p.cfg.Source.Dependencies(ctx, job.ID, maxAwaited)
	if err != nil {
		d = node.Dependencies{}
	}
	found := map[command.JobID]*jobgraph.Node{}
	if len(job.Spec.After)+d.All+d.FollowedAll > 0 {
		v.Graph = p.graph(ctx, job.ID, found)
	}
	v.Waits = slices.ContainsFunc(d.On, func(on node.Dependency) bool { return on.State == "" })
	seen := map[command.JobID]string{}
	for _, on := range d.On {
		seen[on.Job] = on.State
	}
	for _, on := range job.Spec.After {
		row := p.waitRow(ctx, on.Job, seen[on.Job], found)
		row.Wish = wishes[on.When]
		v.WaitsOn = append(v.WaitsOn, row)
	}
	for _, id := range d.Waiting {
		v.Awaited = append(v.Awaited, p.waitRow(ctx, id, "", found))
	}
	v.MoreAwaited = d.All - len(d.Waiting)
}

// wishes are how a job is to end that is waited for.
var wishes = map[jobspec.When]string{
	jobspec.WhenOK: "must succeed", jobspec.WhenAny: "must end", jobspec.WhenNotOK: "must end without success",
	jobspec.WhenEach: "must succeed, task by task",
}

// waitRow shows a job with its state; ended is the one that was recorded, "" = none, for one that is no longer kept.
// Jobs that were found are not asked for again.
func (p *Pages) waitRow(
	ctx context.Context, id command.JobID, ended string, found map[command.JobID]*jobgraph.Node,
) waitRow {
	row := waitRow{ID: id, State: ended}
	if n := found[id]; n != nil && n.Job != nil {
		row.State, row.Name = n.State, n.Name()
		return row
	}
	if job, err := p.cfg.Source.Job(ctx, id); err == nil {
		row.State, row.Name = job.State, job.Spec.Name
	}
	return row
}

// graph draws the jobs around one, and notes those that it found. Errors leave it out.
func (p *Pages) graph(ctx context.Context, id command.JobID, found map[command.JobID]*jobgraph.Node) graph {
	g, err := jobgraph.Find(ctx, p.cfg.Source, id, graphBounds)
	if err != nil {
		return graph{}
	}
	for i := range g.Nodes {
		found[g.Nodes[i].ID] = &g.Nodes[i]
	}
	return drawGraph(&g)
}
