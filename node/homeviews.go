package node

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// ownRecord is what the core copies of a job that only this broker knows: at
// home, or on its way. The rest of its view is made outside the core's turn.
type ownRecord struct {
	spec   fsm.JobSpec // its slices are shared, and never change
	counts fsm.Counts
	homeSummary
}

// ownSpec is what a job's owner asked for, if only this broker knows the job.
func (c *core) ownSpec(num uint64) (js fsm.JobSpec, ok bool) {
	if h := c.home.jobs[num]; h != nil {
		return h.Spec, true
	}
	if p := c.pubs.find(num); p != nil {
		return p.spec, true
	}
	return js, false
}

// ownRecord copies a job; steps counts the tasks that were looked at.
func (c *core) ownRecord(num uint64) (r ownRecord, steps int, ok bool) {
	if h := c.home.jobs[num]; h != nil {
		steps = h.sum()
		return ownRecord{h.Spec, h.counts, h.summary}, steps, true
	}
	if p := c.pubs.find(num); p != nil {
		r.spec, r.reason = p.spec, c.pendingReason(p)
		r.counts[fsm.Queued] = p.spec.Count
		return r, 0, true
	}
	return r, 0, false
}

// view shows the job of a site.
func (r *ownRecord) view(site string) Job {
	spec, err := SpecOf(r.spec)
	if err != nil {
		spec = Spec{Name: "unreadable: " + err.Error()}
	}
	return Job{
		ID: fsm.JobID{Site: site, Num: r.spec.Num}, Spec: spec, State: r.counts.JobState().String(), Reason: r.reason,
		Durability: DurableSite, Counts: countsOf(r.counts), SubmittedAt: time.UnixMilli(r.spec.CreatedMs),
		StartedAt: unixMs(r.startedMs), EndedAt: unixMs(r.endedMs),
	}
}

// ownJob shows a job that only this broker knows.
func (c *core) ownJob(num uint64) (Job, bool) {
	r, _, ok := c.ownRecord(num)
	if !ok {
		return Job{}, false
	}
	return r.view(c.site), true
}

// pendingReason is why a job on its way is not in the queue.
func (c *core) pendingReason(p *pendingJob) string {
	if p.recovered && c.out.incarnation == 0 {
		return "this site has it; whether it was published already is known once there is a quorum"
	}
	if c.alone() {
		return unpublished
	}
	return "being published to the federation"
}

func (c *core) homeTaskView(t *homeTask) Task {
	v := Task{
		State: t.State.String(), Reason: t.Reason, Machine: t.Machine,
		Attempt: t.Attempt, Token: t.Token, StartedAt: unixMs(t.StartedMs), EndedAt: unixMs(t.EndedMs),
	}
	v.Run = -1
	if t.StartedMs > 0 && t.EndedMs > 0 {
		v.Run = ran(t.StartedMs, t.EndedMs)
	}
	if t.Attempt > 0 {
		v.Site = c.site
	}
	v.ExitCode, v.Signal = codes(t.State, int32(t.ExitCode), int32(t.Signal))
	return v
}

// isEnd reports whether a task in this state will not change any more.
func isEnd(s fsm.TaskState) bool { return s >= fsm.TaskSucceeded && s <= fsm.TaskLost }

// isLive reports whether a task in this state has an attempt.
func isLive(s fsm.TaskState) bool {
	return s == fsm.Assigned || s == fsm.Running || s == fsm.Stopping
}

// isEndName is isEnd for a state's name.
func isEndName(name string) bool {
	for s := fsm.TaskSucceeded; s <= fsm.TaskLost; s++ {
		if s.String() == name {
			return true
		}
	}
	return false
}
