package core

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// OwnRecord is what the core copies of a job that only this broker knows: at
// home, or on its way. The rest of its view is made outside the core's turn.
type OwnRecord struct {
	Spec   command.JobSpec // its slices are shared, and never change
	counts fsm.Counts
	homeSummary
}

// OwnSpec returns what a job's owner asked for, if only this broker knows the job.
func (c *Core) OwnSpec(num uint64) (js command.JobSpec, ok bool) {
	if h := c.home.jobs[num]; h != nil {
		return h.Spec, true
	}
	if p := c.pubs.find(num); p != nil {
		return p.spec, true
	}
	return js, false
}

// OwnRecord copies a job; steps counts the tasks that were looked at.
func (c *Core) OwnRecord(num uint64) (r OwnRecord, steps int, ok bool) {
	if h := c.home.jobs[num]; h != nil {
		steps = h.sum()
		return OwnRecord{h.Spec, h.counts, h.summary}, steps, true
	}
	if p := c.pubs.find(num); p != nil {
		r.Spec, r.reason = p.spec, c.pendingReason(p)
		r.counts[fsm.Queued] = p.spec.Count
		return r, 0, true
	}
	return r, 0, false
}

// View shows the job of a site.
func (r *OwnRecord) View(site string) node.Job {
	spec, err := jobspec.SpecOf(r.Spec)
	if err != nil {
		spec = jobspec.Spec{Name: "unreadable: " + err.Error()}
	}
	return node.Job{
		ID: command.JobID{Site: site, Num: r.Spec.Num}, Spec: spec, State: r.counts.JobState().String(), Reason: r.reason,
		Durability: node.DurableSite, Counts: node.CountsOf(r.counts), SubmittedAt: time.UnixMilli(r.Spec.CreatedMs),
		StartedAt: unixMs(r.startedMs), EndedAt: unixMs(r.endedMs),
	}
}

// ownJob shows a job that only this broker knows.
func (c *Core) ownJob(num uint64) (node.Job, bool) {
	r, _, ok := c.OwnRecord(num)
	if !ok {
		return node.Job{}, false
	}
	return r.View(c.site), true
}

// pendingReason returns why a job on its way is not in the queue.
func (c *Core) pendingReason(p *pendingJob) string {
	if p.recovered && c.out.incarnation == 0 {
		return "this site has it; whether it was published already is known once there is a quorum"
	}
	if c.Alone() {
		return Unpublished
	}
	return "being published to the federation"
}

func (c *Core) homeTaskView(t *homeTask) node.Task {
	v := node.Task{
		State: t.State.String(), Reason: t.Reason, Machine: t.Machine,
		Attempt: t.Attempt, Token: t.Token, StartedAt: unixMs(t.StartedMs), EndedAt: unixMs(t.EndedMs),
	}
	v.Run = -1
	if t.StartedMs > 0 && t.EndedMs > 0 {
		v.Run = node.Ran(t.StartedMs, t.EndedMs)
	}
	if t.Attempt > 0 {
		v.Site = c.site
	}
	v.ExitCode, v.Signal = node.Codes(t.State, int32(t.ExitCode), int32(t.Signal))
	return v
}

// isLive reports whether a task in this state has an attempt.
func isLive(s fsm.TaskState) bool {
	return s == fsm.Assigned || s == fsm.Running || s == fsm.Stopping
}

// FindOwnTasks searches the tasks of a job that only this broker knows.
func (c *Core) FindOwnTasks(num uint64, q node.TaskQuery) (tasks []node.Task, next uint32, found bool) {
	js, found := c.OwnSpec(num)
	if !found {
		return nil, 0, false
	}
	n, steps := jobspec.NumberingOf(js.Payload, js.Count), 0
	view := c.ownTaskView(num)
	next = q.Walk(&n, func(from, to uint32) uint32 {
		for ; from < to && len(tasks) < q.Limit && steps < OwnSteps; from++ {
			steps++
			if state, show := view(from); q.States.Has(state) {
				t := show()
				t.Index, t.Position = n.Index(from), from
				tasks = append(tasks, t)
			}
		}
		return from
	})
	return tasks, next, true
}

// ownTaskView shows the tasks of a job that only this broker knows: each one's
// state, and all of it. REQUIRES: the job is known.
func (c *Core) ownTaskView(num uint64) func(position uint32) (fsm.TaskState, func() node.Task) {
	if h := c.home.jobs[num]; h != nil {
		return func(i uint32) (fsm.TaskState, func() node.Task) {
			t := &h.Tasks[i]
			return t.State, func() node.Task { return c.homeTaskView(t) }
		}
	}
	reason := c.pendingReason(c.pubs.find(num))
	return func(uint32) (fsm.TaskState, func() node.Task) {
		return fsm.Queued, func() node.Task { return node.Task{State: fsm.Queued.String(), Reason: reason, Run: -1} }
	}
}
