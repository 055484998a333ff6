package after

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
	"github.com/cloudshare/cloudshare/node/record"
)

// Hold takes a job that waits for others; outcomeOf says how one has ended that nobody waits for yet, "" = it has not.
// What can be released at once, or never, is so with the next Release or End.
func (b *Book) Hold(
	js command.JobSpec, on []Dep, user string, outcomeOf func(num uint64) string, fx *turn.Effects,
) *Job {
	return b.hold(&Job{Spec: js, User: user, On: on}, outcomeOf, fx)
}

// hold takes a job that is made.
func (b *Book) hold(j *Job, outcomeOf func(num uint64) string, fx *turn.Effects) *Job {
	b.add(j)
	b.write(j, fx)
	for _, d := range j.On {
		t := b.name(d.Num)
		if t.outcome != "" {
			b.past.Add(d.Num, j.Spec.Num)
			continue
		}
		if t.outcome = outcomeOf(d.Num); t.outcome != "" {
			b.settle(t, fx)
		}
	}
	b.judge(j)
	b.emitHeld(j)
	return j
}

// add has a job found by its number.
func (b *Book) add(j *Job) {
	b.jobs[j.Spec.Num] = j
	b.nums.Add(j.Spec.Num, 1)
	if !j.Held() {
		b.ended = append(b.ended, j.Spec.Num)
		return
	}
	b.held.Add(j.Spec.Num, 1)
	b.count(j, 1)
	for _, d := range j.On {
		t := b.name(d.Num)
		t.refs++
		t.waiting = append(t.waiting, j.Spec.Num)
	}
}

// judge counts what a job waits for, and has it released or ended if that is nothing, or in vain.
func (b *Book) judge(j *Job) {
	j.left = 0
	if j.Inputs == InputsAwaited {
		j.left = 1
	}
	for _, d := range j.On {
		switch t := b.targets[d.Num]; {
		case t.outcome == "":
			j.left++
		case !Allows(d.When, t.outcome):
			b.inVain = append(b.inVain, inVain{j.Spec.Num, b.vainReason(d, t.outcome)})
			j.left = -1
			return
		}
	}
	if j.left == 0 {
		b.due = append(b.due, j.Spec.Num)
	}
}

// Saw notes how a job has ended, if any wait for it.
func (b *Book) Saw(num uint64, outcome string, fx *turn.Effects) {
	t := b.targets[num]
	if t == nil || t.outcome != "" {
		return
	}
	t.outcome = outcome
	b.settle(t, fx)
}

// settle records the outcome of a job, and judges those that wait for it.
func (b *Book) settle(t *target, fx *turn.Effects) {
	b.dropLook(t)
	if !mutate.On("no-outcome-record") {
		fx.Writes = append(fx.Writes, record.Put(record.BucketOutcomes, record.Number(t.num), []byte(t.outcome)))
	}
	waiting := t.waiting
	t.waiting = nil
	for _, num := range waiting {
		j := b.jobs[num]
		if j == nil || !j.Held() {
			continue // cancelled meanwhile
		}
		b.past.Add(t.num, num)
		if j.left <= 0 {
			continue // in vain already
		}
		d := j.On[slices.IndexFunc(j.On, func(d Dep) bool { return d.Num == t.num })]
		if !Allows(d.When, t.outcome) {
			b.inVain = append(b.inVain, inVain{num, b.vainReason(d, t.outcome)})
			j.left = -1
			continue
		}
		if j.left--; j.left == 0 {
			b.due = append(b.due, num)
		}
	}
}

// Release takes up to most jobs out that wait for nothing any more; the caller has them run. Their records go with this
// turn's writes, among which must be those of where they go.
func (b *Book) Release(most int, fx *turn.Effects) (jobs []*Job) {
	for len(b.due) > 0 && len(jobs) < most {
		num := b.due[0]
		b.due = b.due[1:]
		j := b.jobs[num]
		if j == nil || !j.Held() {
			continue // cancelled before its turn
		}
		b.unhold(j, fx)
		if b.drop(num); !mutate.On("no-release-record") {
			b.unwrite(num, fx)
		}
		b.emitReleased(j)
		if t := b.targets[num]; t != nil {
			b.addLook(t)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// End ends up to most jobs that wait in vain, those among them that wait for such ones, and returns them.
func (b *Book) End(most int, fx *turn.Effects) (jobs []*Job) {
	for len(b.inVain) > 0 && len(jobs) < most {
		v := b.inVain[0]
		b.inVain = b.inVain[1:]
		if j := b.jobs[v.num]; j != nil && j.Held() {
			b.end(j, v.reason, fx)
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// Cancel ends a held job, with why for people, and returns it; nil: it is not held.
func (b *Book) Cancel(num uint64, reason string, fx *turn.Effects) *Job {
	j := b.jobs[num]
	if j == nil || !j.Held() {
		return nil
	}
	b.end(j, reason, fx)
	return j
}

// end ends a held job, and remembers it for a while.
func (b *Book) end(j *Job, reason string, fx *turn.Effects) {
	num := j.Spec.Num
	b.unhold(j, fx)
	j.EndedMs, j.Reason = b.now.Wall.UnixMilli(), command.Clip(reason)
	b.write(j, fx)
	b.emitEnded(j)
	b.Saw(num, fsm.TaskCancelled.String(), fx)
	b.ended = append(b.ended, num)
	for len(b.ended) > b.maxEnded {
		b.forget(b.ended[0], fx)
		b.ended = b.ended[1:]
	}
}

// SetPriority gives a held job another priority, for when it is released.
func (b *Book) SetPriority(j *Job, priority int32, fx *turn.Effects) {
	if was := j.Spec.Priority; was != priority {
		j.Spec.Priority = priority
		b.write(j, fx)
		b.emitPriority(j, was)
	}
}

// unhold counts a job as held no more, and lets go what it waited for.
func (b *Book) unhold(j *Job, fx *turn.Effects) {
	b.held.Remove(j.Spec.Num, 1)
	b.count(j, -1)
	for _, d := range j.On {
		if b.Outcome(d.Num) == "" {
			b.past.Add(d.Num, j.Spec.Num)
		}
		b.unname(d.Num, fx)
	}
}

// forget drops all that is known of a job.
func (b *Book) forget(num uint64, fx *turn.Effects) {
	b.drop(num)
	b.unwrite(num, fx)
}

// drop has a job found no more.
func (b *Book) drop(num uint64) {
	delete(b.jobs, num)
	b.nums.Remove(num, 1)
}

// unwrite removes a job's record.
func (b *Book) unwrite(num uint64, fx *turn.Effects) {
	fx.Writes = append(fx.Writes, record.Remove(record.BucketHeld, record.Number(num)))
}
