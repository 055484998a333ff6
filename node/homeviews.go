package node

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// ownJob shows a job that only this broker knows: at home, or on its way.
func (c *core) ownJob(num uint64) (Job, bool) {
	if h := c.home.jobs[num]; h != nil {
		return c.homeJobView(num, h), true
	}
	if p := c.pubs.find(num); p != nil {
		return c.pendingView(p), true
	}
	return Job{}, false
}

func (c *core) homeJobView(num uint64, h *homeJob) Job {
	counts := h.counts()
	j := c.newView(&h.Spec)
	j.ID = fsm.JobID{Site: c.site, Num: num}
	j.Durability, j.Counts, j.State = DurableSite, countsOf(counts), h.state().String()
	for i := range h.Tasks {
		t := &h.Tasks[i]
		if started := unixMs(t.StartedMs); !started.IsZero() && (j.StartedAt.IsZero() || started.Before(j.StartedAt)) {
			j.StartedAt = started
		}
		if t.EndedMs > 0 && h.ended() && unixMs(t.EndedMs).After(j.EndedAt) {
			j.EndedAt = unixMs(t.EndedMs)
		}
		if j.Reason == "" && t.State.String() == j.State {
			j.Reason = t.Reason
		}
	}
	return j
}

func (c *core) pendingView(p *pendingJob) Job {
	j := c.newView(&p.spec)
	j.ID = fsm.JobID{Site: c.site, Num: p.spec.Num}
	j.Durability, j.State, j.Reason = DurableSite, fsm.Queued.String(), c.pendingReason()
	var counts fsm.Counts
	counts[fsm.Queued] = p.spec.Count
	j.Counts = countsOf(counts)
	return j
}

func (c *core) pendingReason() string {
	if c.alone() {
		return "no quorum now: kept at this site, published as soon as there is one"
	}
	return "being published to the federation"
}

func (c *core) newView(js *fsm.JobSpec) Job {
	spec, err := SpecOf(*js)
	if err != nil {
		spec = Spec{Name: "unreadable: " + err.Error()}
	}
	return Job{Spec: spec, SubmittedAt: time.UnixMilli(js.CreatedMs)}
}

func (j *homeJob) counts() (counts fsm.Counts) {
	for i := range j.Tasks {
		counts[j.Tasks[i].State]++
	}
	return counts
}

func (j *homeJob) state() fsm.TaskState {
	counts := j.counts()
	return counts.JobState()
}

// ownTasks shows the tasks of ownJob.
func (c *core) ownTasks(num uint64, from uint32, limit int) (tasks []Task, next uint32, found bool) {
	if h := c.home.jobs[num]; h != nil {
		for i := int(from); i < len(h.Tasks) && len(tasks) < limit; i++ {
			tasks = append(tasks, c.homeTaskView(uint32(i), &h.Tasks[i]))
		}
		return tasks, nextIndex(from, len(tasks), len(h.Tasks)), true
	}
	if p := c.pubs.find(num); p != nil {
		for i := from; i < p.spec.Count && len(tasks) < limit; i++ {
			tasks = append(tasks, Task{Index: i, State: fsm.Queued.String(), Reason: c.pendingReason()})
		}
		return tasks, nextIndex(from, len(tasks), int(p.spec.Count)), true
	}
	return nil, 0, false
}

func nextIndex(from uint32, got, count int) uint32 {
	if int(from)+got >= count {
		return 0
	}
	return from + uint32(got)
}

func (c *core) homeTaskView(index uint32, t *homeTask) Task {
	v := Task{
		Index: index, State: t.State.String(), Reason: t.Reason, Machine: t.Machine,
		Attempt: t.Attempt, Token: t.Token, StartedAt: unixMs(t.StartedMs), EndedAt: unixMs(t.EndedMs),
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
