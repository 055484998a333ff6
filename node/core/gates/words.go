package gates

import (
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// isFailure reports whether an attempt that ended so has failed, by its own or its time.
func isFailure(end fsm.Ending) bool { return end == fsm.EndFailed || end == fsm.EndTimedOut }

// Why says why tasks of a job are held, "" = none were when it was looked at last.
func (b *Book) Why(num uint64) string {
	j := b.jobs[num]
	if j == nil {
		return ""
	}
	w := &j.Waiting
	var parts []string
	say := func(n uint32, words string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, words))
		}
	}
	say(w.Unreadable, fmt.Sprintf("since this broker cannot read when they may begin (%s): start the version that took "+
		"the job, or cancel it", j.unreadable))
	say(w.ByHand, ByHand)
	pause := "in the pause after a failure"
	if left := j.nextMs - b.stateMs - (b.Now.Boot-b.stateBoot)/1e6; w.Backoff > 0 && left > 0 {
		pause += fmt.Sprintf(", the first for %.1f s more", float64(left)/1000)
	}
	say(w.Backoff, pause)
	say(w.Parallel, fmt.Sprintf("since at most %d of the job run at a time", j.rules.Parallel))
	say(w.Each, "for the tasks at their places of "+b.eachWords(j))
	if len(parts) == 0 {
		return ""
	}
	return "tasks held: " + strings.Join(parts, "; ")
}

// EachOf returns the jobs for whose tasks those of a job wait one by one.
func (b *Book) EachOf(num uint64) []command.JobID {
	if j := b.jobs[num]; j != nil {
		return j.rules.Each
	}
	return nil
}

// OutcomeOf returns the state in which a job has ended for whose tasks others wait, "" if it has not, or unknown.
func (b *Book) OutcomeOf(num uint64) string {
	switch t := b.targets[num]; {
	case t == nil || !t.over:
		return ""
	case t.counts != fsm.Counts{}:
		return t.counts.JobState().String()
	case !t.Unknown && !t.failed(): // an earlier run of the broker saw it
		return fsm.TaskSucceeded.String()
	}
	return node.OutcomeUnknown
}

// Awaiting returns the jobs whose tasks wait for those of a job one by one.
func (b *Book) Awaiting(num uint64) []uint64 {
	if t := b.targets[num]; t != nil {
		return t.jobs
	}
	return nil
}

// Followers returns the first most of the jobs whose tasks waited for those of a job, and that have ended since the
// broker was started, and how many have.
func (b *Book) Followers(num uint64, most int) (first []uint64, all int) { return b.past.Of(num, most) }

// eachWords names the jobs that a job's tasks wait for.
func (b *Book) eachWords(j *Job) string {
	var ids []string
	for _, id := range j.rules.Each {
		if len(ids) == 3 {
			return fmt.Sprintf("%s and %d more", strings.Join(ids, ", "), len(j.rules.Each)-3)
		}
		ids = append(ids, id.String())
	}
	return strings.Join(ids, ", ")
}
