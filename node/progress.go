package node

import (
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/fsm"
)

// Progress says in words how far a job is that has not ended and of which tasks have:
// "6/60 done, waiting". It is empty of others, of which their state says enough.
func (j *Job) Progress() string {
	all, over := uint32(0), uint32(0)
	for state := fsm.Queued; state <= fsm.Held; state++ {
		n := j.Counts[state.String()]
		if all += n; state.Ended() {
			over += n
		}
	}
	if over == 0 || over == all {
		return ""
	}
	return fmt.Sprintf("%d/%d done%s, %s", over, all, j.misfortunes(), j.liveState())
}

// misfortunes counts the ended tasks that did not succeed, in brackets.
func (j *Job) misfortunes() string {
	var parts []string
	for _, state := range []fsm.TaskState{fsm.TaskFailed, fsm.TaskLost, fsm.TaskCancelled} {
		if n := j.Counts[state.String()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// liveState says what the tasks do that have not ended.
func (j *Job) liveState() string {
	count := func(state fsm.TaskState) uint32 { return j.Counts[state.String()] }
	switch live := count(fsm.Assigned) + count(fsm.Running) + count(fsm.Stopping); {
	case live > 0:
		return fmt.Sprintf("%d running", live)
	case count(fsm.Queued) > 0:
		return "waiting"
	case count(fsm.Held) > 0:
		return Held
	}
	return "withdrawn"
}
