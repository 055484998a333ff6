package core

import "github.com/cloudshare/cloudshare/fsm"

// homeSummary is what a job's view takes from all its tasks besides the counts.
type homeSummary struct {
	reason string // of the first task that gives the job its state
	// Moments in unix milliseconds, 0 = not yet: the first start, and the last end
	// once all have ended.
	startedMs, endedMs int64
}

// changed has the books of a job follow one of its tasks. It is called after
// each change of a task.
func (j *homeJob) changed(task uint32) {
	t := &j.Tasks[task]
	j.counts[t.counted]--
	j.counts[t.State]++
	t.counted = t.State
	j.summed = false
}

func (j *homeJob) state() fsm.TaskState { return j.counts.JobState() }

func (j *homeJob) ended() bool {
	n := uint32(0)
	for s := fsm.TaskSucceeded; s <= fsm.TaskLost; s++ {
		n += j.counts[s]
	}
	return int(n) == len(j.Tasks)
}

// sum brings the summary up to date, and returns how many tasks it looked at:
// none if nothing has changed, so that what has ended costs nothing.
func (j *homeJob) sum() (steps int) {
	if j.summed {
		return 0
	}
	state := j.state()
	j.summary = homeSummary{}
	for i := range j.Tasks {
		t, s := &j.Tasks[i], &j.summary
		if t.StartedMs > 0 && (s.startedMs == 0 || t.StartedMs < s.startedMs) {
			s.startedMs = t.StartedMs
		}
		s.endedMs = max(s.endedMs, t.EndedMs)
		if s.reason == "" && t.State == state {
			s.reason = t.Reason
		}
	}
	if !j.ended() {
		j.summary.endedMs = 0
	}
	j.summed = true
	return len(j.Tasks)
}
