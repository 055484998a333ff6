package after

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// HoldForInputs is Hold of a job whose inputs are not here yet, and which may wait for no other. Brought,
// NotBrought or Cancel follows.
func (b *Book) HoldForInputs(
	js command.JobSpec, on []Dep, user string, outcomeOf func(num uint64) string, fx *turn.Effects,
) *Job {
	return b.hold(&Job{Spec: js, User: user, On: on, Inputs: InputsAwaited}, outcomeOf, fx)
}

// Awaits reports whether the job is held and its inputs are not here.
func (j *Job) Awaits() bool { return j.Held() && j.Inputs == InputsAwaited }

// Brought gives a job that awaits its inputs the spec that names them; its priority stays what it was changed to.
// REQUIRES: the job awaits them.
func (b *Book) Brought(js command.JobSpec, fx *turn.Effects) {
	j := b.jobs[js.Num]
	b.count(j, -1)
	js.Priority = j.Spec.Priority
	j.Spec, j.Inputs = js, InputsBrought
	b.count(j, 1)
	b.write(j, fx)
	if j.left < 0 {
		return // in vain already
	}
	if j.left--; j.left == 0 {
		b.due = append(b.due, js.Num)
	}
}

// NotBrought ends a job that awaits its inputs, with why for people. REQUIRES: the job awaits them.
func (b *Book) NotBrought(num uint64, reason string, fx *turn.Effects) *Job {
	j := b.jobs[num]
	b.count(j, -1)
	j.Inputs = InputsFailed
	b.count(j, 1)
	b.end(j, reason, fx)
	return j
}

// Awaiting returns the numbers of the jobs that await their inputs, ascending.
func (b *Book) Awaiting() (nums []uint64) {
	for num := range b.held.All() {
		if b.jobs[num].Awaits() {
			nums = append(nums, num)
		}
	}
	return nums
}
