package homejobs

import "github.com/cloudshare/cloudshare/fsm"

// Summary is what a job's view takes from all its tasks, besides the counts.
type Summary struct {
	Reason string // of the first task that gives the job its state
	// Moments in unix milliseconds, 0 = not yet: the first start, and the last end
	// once all have ended.
	StartedMs, EndedMs int64
}

// changed has the books of a job follow one of its tasks. It is called after
// each change of a task.
func (j *Job) changed(task uint32) {
	t := &j.Tasks[task]
	j.counts[t.counted]--
	j.counts[t.State]++
	t.counted = t.State
	j.summed = false
}

// State returns what the states of its tasks make the job's.
func (j *Job) State() fsm.TaskState { return j.counts.JobState() }

// Counts returns how many tasks are in each state.
func (j *Job) Counts() fsm.Counts { return j.counts }

// Ended reports whether all tasks have ended.
func (j *Job) Ended() bool {
	n := uint32(0)
	for s := fsm.TaskSucceeded; s <= fsm.TaskLost; s++ {
		n += j.counts[s]
	}
	return int(n) == len(j.Tasks)
}

// allQueued reports whether nothing of the job is under way or has ended.
func (j *Job) allQueued() bool { return int(j.counts[fsm.Queued]) == len(j.Tasks) }

// Sum returns the summary, and how many tasks it looked at: none if nothing has
// changed, so that what has ended costs nothing.
func (j *Job) Sum() (sum Summary, steps int) {
	if j.summed {
		return j.summary, 0
	}
	state := j.State()
	j.summary = Summary{}
	for i := range j.Tasks {
		t, s := &j.Tasks[i], &j.summary
		if t.StartedMs > 0 && (s.StartedMs == 0 || t.StartedMs < s.StartedMs) {
			s.StartedMs = t.StartedMs
		}
		s.EndedMs = max(s.EndedMs, t.EndedMs)
		if s.Reason == "" && t.State == state {
			s.Reason = t.Reason
		}
	}
	if !j.Ended() {
		j.summary.EndedMs = 0
	}
	j.summed = true
	return j.summary, len(j.Tasks)
}
