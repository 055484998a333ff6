package after

import (
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// maxNamed is how many jobs a reason names; it is one line.
const maxNamed = 3

// inputsWords says that a job's inputs are not here yet.
const inputsWords = "waits for its inputs to be brought here"

// wishes are how a job is to end.
var wishes = map[jobspec.When]string{
	jobspec.WhenOK: "to succeed", jobspec.WhenAny: "to end", jobspec.WhenNotOK: "to end without success",
}

// WaitsFor says what a held job waits for, or why it has ended.
func (b *Book) WaitsFor(j *Job) string {
	if !j.Held() {
		return j.Reason
	}
	switch words := b.waitsFor(j.On, b.Outcome); {
	case j.Inputs == InputsAwaited && words != "":
		return inputsWords + ", and " + words
	case j.Inputs == InputsAwaited && j.left > 0:
		return inputsWords
	case words != "":
		return words
	case j.left < 0:
		return "waits in vain: it is about to be cancelled"
	default:
		return "waits for nothing any more: it is about to be released"
	}
}

// waitsFor says which jobs of a list have no outcome yet, "" = all have one.
func (b *Book) waitsFor(on []Dep, outcomeOf func(num uint64) string) string {
	var parts []string
	more := 0
	for _, d := range on {
		switch {
		case outcomeOf(d.Num) != "":
		case len(parts) == maxNamed:
			more++
		default:
			parts = append(parts, b.id(d.Num).String()+" "+wishes[d.When])
		}
	}
	switch {
	case len(parts) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf("waits for %s and %d more", strings.Join(parts, ", "), more)
	}
	return "waits for " + strings.Join(parts, ", ")
}

// Foresee says what would become of a job that waits for others, were it held now: what it would wait for, or in vain
// that it would be cancelled at once, with why. outcomeOf says how each of them has ended, "" = it has not.
func (b *Book) Foresee(on []Dep, outcomeOf func(num uint64) string) (words string, vain bool) {
	for _, d := range on {
		if outcome := outcomeOf(d.Num); outcome != "" && !Allows(d.When, outcome) {
			return b.vainReason(d, outcome), true
		}
	}
	return b.waitsFor(on, outcomeOf), false
}

// WithEach adds to words, of what a job would wait for as a whole, for which jobs its tasks would wait one by one.
func WithEach(words string, list []jobspec.Dependency, outcomeOf func(num uint64) string) string {
	var ids []string
	for i := range list {
		d := &list[i]
		switch outcome := outcomeOf(d.Job.Num); {
		case d.When != jobspec.WhenEach, outcome == fsm.TaskSucceeded.String():
		case outcome == "":
			ids = append(ids, d.Job.String())
		default:
			ids = append(ids, d.Job.String()+" (which has ended: where that one has not succeeded, the task is cancelled)")
		}
	}
	if len(ids) == 0 {
		return words
	}
	if more := len(ids) - maxNamed; more > 0 {
		ids = append(ids[:maxNamed], fmt.Sprintf("%d more", more))
	}
	each := "each task waits for the one at its place of " + strings.Join(ids, ", ")
	if words == "" {
		return each
	}
	return words + "; then " + each
}

// InVain says why a held job can no longer be released; "" if it can.
func (b *Book) InVain(j *Job) string {
	for _, d := range j.On {
		if outcome := b.targets[d.Num].outcome; j.left < 0 && outcome != "" && !Allows(d.When, outcome) {
			return b.vainReason(d, outcome)
		}
	}
	return ""
}

// vainReason says why a job can no longer be released.
func (b *Book) vainReason(d Dep, outcome string) string {
	end := "has " + outcome
	switch outcome {
	case "cancelled":
		end = "was cancelled"
	case "lost":
		end = "was lost"
	case node.OutcomeUnknown:
		end = "is no longer kept: how it ended was not seen"
	}
	return fmt.Sprintf("waited in vain for %s %s: it %s", b.id(d.Num), wishes[d.When], end)
}

func (b *Book) id(num uint64) command.JobID { return command.JobID{Site: b.site, Num: num} }

// On returns what a held job waits for, and has waited for.
func (b *Book) On(j *Job) []node.Dependency {
	if !j.Held() {
		return nil
	}
	out := make([]node.Dependency, len(j.On))
	for i, d := range j.On {
		out[i] = node.Dependency{Job: b.id(d.Num), When: d.When, State: b.targets[d.Num].outcome}
	}
	return out
}

// Waiting returns the first most of the jobs that wait for one, and how many do: none for one that has ended, which
// they have waited for.
func (b *Book) Waiting(num uint64, most int) (first []command.JobID, all int) {
	t := b.targets[num]
	if t == nil || t.outcome != "" {
		return nil, 0
	}
	for _, waiter := range t.waiting {
		if len(first) < most && b.IsHeld(waiter) {
			first = append(first, b.id(waiter))
		}
	}
	return first, t.refs
}

// Followers returns the first most of the jobs that have waited for one and do no more, since the broker was started,
// and how many did.
func (b *Book) Followers(num uint64, most int) (first []uint64, all int) { return b.past.Of(num, most) }
