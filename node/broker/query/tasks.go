package query

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Tasks returns up to limit tasks with index ≥ from, and the index to go on with,
// 0 when there are no more.
func (rd *Reader) Tasks(ctx context.Context, id command.JobID, from uint32, limit int) ([]node.Task, uint32, error) {
	return rd.FindTasks(ctx, id, node.TaskQuery{From: from, Limit: limit})
}

// FindTasks returns the tasks that a query selects, by index, and the index to go
// on with, 0 when there are no more. It takes a bounded number of steps, so that
// there may be fewer than the limit, even none, although there are more.
func (rd *Reader) FindTasks(ctx context.Context, id command.JobID, q node.TaskQuery) ([]node.Task, uint32, error) {
	for range 2 { // a job may be published between the two looks
		if tasks, next, prepared, ok := rd.federationTasks(id, q); ok {
			if rd.progress.explain(id, tasks); prepared && rd.far != nil {
				rd.far.explain(ctx, rd.site, id, tasks)
			}
			return tasks, next, nil
		}
		if id.Site != rd.site {
			return nil, 0, rd.Elsewhere(id.Site, "owner")
		}
		var tasks []node.Task
		var next uint32
		found := false
		if err := rd.query(ctx, func(c *core.Core) { tasks, next, found = c.Own().FindTasks(id.Num, q) }); err != nil {
			return nil, 0, err
		}
		if found {
			rd.progress.explain(id, tasks)
			return tasks, next, nil
		}
	}
	return nil, 0, rd.missingJob(id)
}

// federationTasks searches the tasks of a job that is in the state. prepared: other sites may prepare the start of some
// of them, which are this site's.
func (rd *Reader) federationTasks(
	id command.JobID, q node.TaskQuery,
) (tasks []node.Task, next uint32, prepared, ok bool) {
	rd.replica.View(func(s *fsm.State) {
		var job fsm.JobView
		if job, ok = s.Job(id); !ok {
			return
		}
		n := jobspec.NumberingOf(job.Spec.Payload, job.Spec.Count)
		scan := fsm.TaskScan{States: q.States, Limit: q.Limit}
		next = q.Walk(&n, func(from, to uint32) uint32 { return s.ScanTasks(id, &scan, from, to) })
		tasks = make([]node.Task, len(scan.Found))
		for i := range scan.Found {
			tasks[i] = rd.taskOf(&scan.Found[i], &n, time.UnixMilli(job.Spec.CreatedMs))
			if id.Site == rd.site {
				rd.explainFiles(id, s.Time(), &scan.Found[i], &tasks[i])
			}
			prepared = prepared || id.Site == rd.site && scan.Found[i].State == fsm.Assigned
		}
		if prepared {
			spec, _ := rd.specOf(&job.Spec, id.Site)
			prepared = spec.Image != "" || len(spec.Inputs) > 0
		}
	})
	return tasks, next, prepared, ok
}

// explainFiles says what the files of a task wait for that has run at another site, or why they do not come.
func (rd *Reader) explainFiles(id command.JobID, nowMs int64, v *fsm.TaskView, t *node.Task) {
	ref := command.AttemptRef{Job: id, Task: v.Index, Attempt: v.Attempt, Token: v.Token}
	switch {
	case v.Delivering:
		t.Reason = cmp.Or(rd.delivery(ref), v.Reason)
	case v.State.Ended() && !v.Output.IsZero() && v.Site != rd.site:
		left := fsm.Delivery{AttemptRef: ref, Site: v.Site, Output: v.Output, SinceMs: v.EndedMs}
		if t.FilesAway = rd.leftover(&left, nowMs); t.FilesAway.Why != "" {
			t.Reason = strings.TrimPrefix(t.Reason+"; "+t.FilesAway.Why, "; ")
		}
	}
}

func (rd *Reader) taskOf(v *fsm.TaskView, n *jobspec.Numbering, submitted time.Time) node.Task {
	t := node.Task{
		Index: n.Index(v.Index), State: v.State.String(), Reason: v.Reason, Site: v.Site, Machine: v.Machine,
		Attempt: v.Attempt, Token: v.Token, Position: v.Index, Measured: v.Measured,
		StartedAt: rd.replica.WallOf(v.StartedMs, submitted), Run: node.Ran(v.StartedMs, v.EndedMs),
	}
	t.Unrecorded = isUnrecorded(v, n.Size())
	t.EndedAt = rd.replica.WallOf(v.EndedMs, t.StartedAt)
	t.ExitCode, t.Signal = node.Codes(v.State, v.ExitCode, v.Signal)
	return t
}

// isUnrecorded reports whether a task has ended and its attempts are not known. What
// waited and ended with its job, without a record, has had none, except in a large job:
// that keeps no record of one that waited for another attempt either.
func isUnrecorded(v *fsm.TaskView, count uint32) bool {
	return v.State.Ended() && v.Attempt == 0 && (v.EndedMs < 0 || count > fsm.DetailTasks)
}
