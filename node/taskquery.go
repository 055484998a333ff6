package node

import (
	"context"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// TaskQuery selects and pages the tasks of one job; zero fields select all.
type TaskQuery struct {
	States fsm.TaskStates
	Only   Indices // the tasks with these indices, if not empty
	From   uint32  // the tasks whose index is not below
	Limit  int     // ≥ 1
}

// Tasks returns up to limit tasks with index ≥ from, and the index to go on with,
// 0 when there are no more.
func (b *Broker) Tasks(ctx context.Context, id fsm.JobID, from uint32, limit int) ([]Task, uint32, error) {
	return b.FindTasks(ctx, id, TaskQuery{From: from, Limit: limit})
}

// FindTasks returns the tasks that a query selects, by index, and the index to go
// on with, 0 when there are no more. It takes a bounded number of steps, so that
// there may be fewer than the limit, even none, although there are more.
func (b *Broker) FindTasks(ctx context.Context, id fsm.JobID, q TaskQuery) ([]Task, uint32, error) {
	for range 2 { // a job may be published between the two looks
		if tasks, next, ok := b.federationTasks(id, q); ok {
			b.doings.explain(id, tasks)
			return tasks, next, nil
		}
		if id.Site != b.cfg.Site {
			return nil, 0, b.elsewhere(id.Site, "owner")
		}
		var tasks []Task
		var next uint32
		found := false
		if err := b.ask(ctx, func(c *core) { tasks, next, found = c.findOwnTasks(id.Num, q) }); err != nil {
			return nil, 0, err
		}
		if found {
			b.doings.explain(id, tasks)
			return tasks, next, nil
		}
	}
	return nil, 0, b.missingJob(id)
}

// federationTasks searches the tasks of a job that is in the state.
func (b *Broker) federationTasks(id fsm.JobID, q TaskQuery) (tasks []Task, next uint32, ok bool) {
	b.cfg.Replica.View(func(s *fsm.State) {
		var job fsm.JobView
		if job, ok = s.Job(id); !ok {
			return
		}
		n := numberingOf(job.Spec.Payload, job.Spec.Count)
		scan := fsm.TaskScan{States: q.States, Limit: q.Limit}
		next = q.walk(&n, func(from, to uint32) uint32 { return s.ScanTasks(id, &scan, from, to) })
		tasks = make([]Task, len(scan.Found))
		for i := range scan.Found {
			tasks[i] = b.taskOf(&scan.Found[i], &n, time.UnixMilli(job.Spec.CreatedMs))
		}
	})
	return tasks, next, ok
}

// walk calls look for the positions [from, to) of each range of tasks that the
// query may select, until look stops short, and returns the index to go on with.
func (q *TaskQuery) walk(n *numbering, look func(from, to uint32) (stopped uint32)) (next uint32) {
	walkRange := func(first, end uint32) bool { // positions
		if stopped := look(first, end); stopped < end {
			next = n.index(stopped)
			return false
		}
		return true
	}
	begin := n.position(q.From)
	if q.Only.Len() == 0 {
		walkRange(begin, n.count)
		return next
	}
	for _, r := range q.Only.ranges {
		first, end := max(begin, n.position(r.from)), n.position(r.to+1)
		if first < end && !walkRange(first, end) {
			return next
		}
	}
	return 0
}

func (b *Broker) taskOf(v *fsm.TaskView, n *numbering, submitted time.Time) Task {
	t := Task{
		Index: n.index(v.Index), State: v.State.String(), Reason: v.Reason, Site: v.Site, Machine: v.Machine,
		Attempt: v.Attempt, Token: v.Token, position: v.Index,
		StartedAt: b.cfg.Replica.wallOf(v.StartedMs, submitted), Run: ran(v.StartedMs, v.EndedMs),
	}
	t.EndedAt = b.cfg.Replica.wallOf(v.EndedMs, t.StartedAt)
	t.ExitCode, t.Signal = codes(v.State, v.ExitCode, v.Signal)
	return t
}

// findOwnTasks searches the tasks of a job that only this broker knows.
func (c *core) findOwnTasks(num uint64, q TaskQuery) (tasks []Task, next uint32, found bool) {
	js, found := c.ownSpec(num)
	if !found {
		return nil, 0, false
	}
	n, steps := numberingOf(js.Payload, js.Count), 0
	view := c.ownTaskView(num)
	next = q.walk(&n, func(from, to uint32) uint32 {
		for ; from < to && len(tasks) < q.Limit && steps < ownSteps; from++ {
			steps++
			if state, show := view(from); q.States.Has(state) {
				t := show()
				t.Index, t.position = n.index(from), from
				tasks = append(tasks, t)
			}
		}
		return from
	})
	return tasks, next, true
}

// ownTaskView shows the tasks of a job that only this broker knows: each one's
// state, and all of it. REQUIRES: the job is known.
func (c *core) ownTaskView(num uint64) func(position uint32) (fsm.TaskState, func() Task) {
	if h := c.home.jobs[num]; h != nil {
		return func(i uint32) (fsm.TaskState, func() Task) {
			t := &h.Tasks[i]
			return t.State, func() Task { return c.homeTaskView(t) }
		}
	}
	reason := c.pendingReason(c.pubs.find(num))
	return func(uint32) (fsm.TaskState, func() Task) {
		return fsm.Queued, func() Task { return Task{State: fsm.Queued.String(), Reason: reason, Run: -1} }
	}
}
