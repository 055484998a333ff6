// Package after holds a site's jobs that wait for others of its jobs, or for their own inputs: they are neither at home
// nor on their way to the federation, which does not know them. [Book] has each held job, the outcome of what is waited
// for, and who waits for it; it says which jobs are to be released, and ends those that wait in vain. How a job stands
// elsewhere, and where a released one goes, the core says.
//
//	submit ──Hold──▶ held ──Saw(outcome) of all──▶ due ──Release──▶ home or publish
//	                  └──Saw(outcome) not asked for, Cancel──▶ End: cancelled, which is an outcome, too
//
// An outcome is recorded when it is first seen, in the turn that releases or ends what waits for it: so nothing is
// released twice, and it does not matter what becomes of a job that was waited for. What names only older jobs has no
// cycles.
package after

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/followers"
	"github.com/cloudshare/cloudshare/node/core/numbers"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/internal/tally"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const (
	// MaxHeld is how many jobs may be held. The state remembers a range of numbers for each gap between jobs that have
	// left, and may have 65,536 of them: half as many jobs as this one come and go between those that are held.
	MaxHeld = 200_000
	// maxBytes bounds what they take in memory, and partsOfUser is of how many parts of both one user has one.
	maxBytes    = 256 << 20
	partsOfUser = 2
	// heldBytes is what a held job takes besides its spec, and depBytes what each job does that it waits for.
	heldBytes = 640
	depBytes  = 96
	// MaxEnded is how many jobs are remembered that ended here, without ever being released.
	MaxEnded = 10_000
)

// Dep is a job that a held one waits for.
type Dep struct {
	Num  uint64       `json:"job"`
	When jobspec.When `json:"when,omitempty"`
}

// Inputs says where the inputs of a job are that is held for them.
type Inputs string

// Of a job that has waited for none it is "".
const (
	// InputsAwaited is of a job whose inputs are not here yet.
	InputsAwaited Inputs = "awaited"
	// InputsBrought is of one whose inputs have come.
	InputsBrought Inputs = "brought"
	// InputsFailed is of one that has ended since they will not come, and not because its user cancelled it.
	InputsFailed Inputs = "failed"
)

// Job is a job that waits for others, or for its inputs, or has waited in vain.
type Job struct {
	Spec command.JobSpec // changes in its priority, and once by Brought
	User string
	On   []Dep // never changes
	// Inputs change once: from InputsAwaited to InputsBrought or InputsFailed.
	Inputs Inputs
	// EndedMs is when it was cancelled, in unix milliseconds, and Reason why; 0 = it is held.
	EndedMs int64
	Reason  string
	// left is how many of On have no outcome yet, and one more while inputs are awaited. Invariant: 0 only in due, or
	// ended.
	left int
}

// Held reports whether it waits.
func (j *Job) Held() bool { return j.EndedMs == 0 }

// State returns the state of its tasks, as a job's: what waits counts as queued.
func (j *Job) State() fsm.TaskState {
	if j.Held() {
		return fsm.Queued
	}
	return fsm.TaskCancelled
}

func (j *Job) bytes() int { return bytesOf(&j.Spec, len(j.On)) }

func bytesOf(js *command.JobSpec, deps int) int { return js.SizeBound() + heldBytes + deps*depBytes }

// amount is how much is held; awaiting are those of the jobs whose inputs are not here.
type amount struct{ jobs, bytes, awaiting int }

// amountOf returns how much a held job is.
func amountOf(j *Job) amount {
	a := amount{jobs: 1, bytes: j.bytes()}
	if j.Inputs == InputsAwaited {
		a.awaiting = 1
	}
	return a
}

// Plus implements tally.Amount.
func (a amount) Plus(b amount, sign int) amount {
	return amount{a.jobs + sign*b.jobs, a.bytes + sign*b.bytes, a.awaiting + sign*b.awaiting}
}

// Book holds the jobs that wait for others. One goroutine has it, the core's.
type Book struct {
	site string
	now  *turn.Clock
	// jobs are the held and those that ended here, nums all their numbers, held those of the former.
	jobs  map[uint64]*Job
	nums  numbers.List
	held  numbers.List
	ended []uint64 // oldest first
	// targets are the jobs that held ones wait for, or have waited for.
	targets map[uint64]*target
	// looks are the targets to be looked for, in turns; see Look.
	looks []*target
	next  int
	// due are held jobs to be released, in vain those that are to end. Each is there once.
	due      []uint64
	inVain   []inVain
	amounts  tally.ByUser[amount] // of what is held
	maxEnded int
	// past is who has waited for which job, and does no more.
	past followers.Book
	told []node.Event
	emit func([]node.Event)
}

// inVain is a held job that can no longer be released, and why.
type inVain struct {
	num    uint64
	reason string
}

// NewBook returns the book of a site that holds nothing.
func NewBook(site string, now *turn.Clock) Book {
	return Book{
		site: site, now: now, jobs: map[uint64]*Job{}, targets: map[uint64]*target{},
		maxEnded: MaxEnded,
	}
}

// Find returns a job that is held or has ended here, nil if there is none of that number.
func (b *Book) Find(num uint64) *Job { return b.jobs[num] }

// IsHeld reports whether a job waits for others.
func (b *Book) IsHeld(num uint64) bool {
	j := b.jobs[num]
	return j != nil && j.Held()
}

// Held returns how many jobs wait for others.
func (b *Book) Held() int { return b.held.Len() }

// AwaitInputs returns how many of them have no inputs here yet.
func (b *Book) AwaitInputs() int { return b.amounts.Sum().awaiting }

// LastBelow returns the greatest number of a job here below another one, 0 = of all.
func (b *Book) LastBelow(below uint64) (num uint64, ok bool) { return b.nums.LastBelow(below) }

// HeldNumbers yields those of the held jobs, ascending.
func (b *Book) HeldNumbers() func(func(uint64) bool) { return b.held.All() }

// SettledBelow returns the least number, below the given one, of a held job: it may still be published.
func (b *Book) SettledBelow(settled uint64) uint64 {
	if first, ok := b.held.First(); ok {
		settled = min(settled, first)
	}
	return settled
}

// Room says why a job that waits for so many others cannot be held, or nil.
func (b *Book) Room(js *command.JobSpec, deps int, user string) error {
	n := bytesOf(js, deps)
	if a := b.amounts.Of(user); user != "" && (a.jobs >= MaxHeld/partsOfUser || a.bytes+n > maxBytes/partsOfUser) {
		return fmt.Errorf("%w: %d jobs of user %s (%d MiB) wait for other jobs already; at most %d (%d MiB): try again when some have ended",
			node.ErrFull, a.jobs, user, a.bytes>>20, MaxHeld/partsOfUser, maxBytes/partsOfUser>>20)
	}
	if all := b.amounts.Sum(); all.jobs >= MaxHeld || all.bytes+n > maxBytes {
		return fmt.Errorf("%w: %d jobs of this site (%d MiB) wait for other jobs already; at most %d (%d MiB): try again when some have ended",
			node.ErrFull, all.jobs, all.bytes>>20, MaxHeld, maxBytes>>20)
	}
	return nil
}

// count adds a job to what is held, or takes it from that.
func (b *Book) count(j *Job, sign int) { b.amounts.Add(j.User, amountOf(j), sign) }
