// Package homejobs runs a site's own jobs on its own machines, outside the log (step 2). A job is
// home or published as a whole, so that its counts live in one place; the federation hears of
// the runs afterwards, as usage.
//
// [Book] holds the jobs, their tasks and who waits for another attempt. It begins attempts on
// the site's machines ([attempts.Book], [machines.Set]) and settles their ends; when it may
// begin any, and what becomes of a job that this site cannot run, the core says.
package homejobs

import (
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/machines"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/core/usage"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// MaxEnded is how many ended home jobs a broker remembers.
const MaxEnded = 10_000

type waitingTask struct {
	num  uint64
	task uint32
}

// Book holds the home jobs of this site.
type Book struct {
	site     string
	now      *turn.Clock
	machines *machines.Set
	attempts *attempts.Book
	usage    *usage.Book
	tallies  *trouble.Tallies

	jobs  map[uint64]*Job
	order []uint64 // all of jobs, ascending
	ended []uint64 // of these the ended ones, oldest first
	fresh []uint64 // ended since TakeEnded was called last
	// waiting tasks want another attempt. Invariant: behind stuck those of a higher priority come first, of the same
	// one those that have waited longer. Of a job that is held by hand none is there.
	waiting []waitingTask
	// byHand are the jobs that have not ended and are held by hand.
	byHand map[uint64]bool
	// stuck is how many at the front of waiting are passed over until the machines
	// change. Invariant: all of them are queued, and no machine could take them.
	stuck int
	// unsure are the jobs with attempts of which none has begun yet: they may still be
	// published.
	unsure map[uint64]bool
	// calm: no home task is being stopped, so that a tick need not look.
	calm bool
	// told are events on their way to those who read; emit gives them there, nil =
	// nobody reads.
	told []node.Event
	emit func([]node.Event)
}

// Site is what home runs share with the rest of the core.
type Site struct {
	Name     string
	Now      *turn.Clock
	Machines *machines.Set
	Attempts *attempts.Book
	Usage    *usage.Book
	Tallies  *trouble.Tallies
}

// NewBook returns the book of a site without home jobs.
func NewBook(s Site) Book {
	return Book{
		site: s.Name, now: s.Now, machines: s.Machines, attempts: s.Attempts, usage: s.Usage, tallies: s.Tallies,
		jobs: map[uint64]*Job{}, unsure: map[uint64]bool{}, byHand: map[uint64]bool{},
	}
}

// add takes a job whose tasks were not touched yet.
func (b *Book) add(num uint64, job *Job) {
	job.counts[fsm.Queued] = uint32(len(job.Tasks))
	b.jobs[num] = job
	at, _ := slices.BinarySearch(b.order, num) // the end, but for a job that waited for others
	b.order = slices.Insert(b.order, at, num)
}

// Find returns a home job, nil if there is none of that number.
func (b *Book) Find(num uint64) *Job { return b.jobs[num] }

// Numbers returns those of all home jobs, ascending; they are the book's.
func (b *Book) Numbers() []uint64 { return b.order }

// Waiting returns how many tasks want another attempt.
func (b *Book) Waiting() int { return len(b.waiting) }

// WaitingBefore counts the tasks that wait before a job's first one.
func (b *Book) WaitingBefore(num uint64) int {
	return max(0, slices.IndexFunc(b.waiting, func(w waitingTask) bool { return w.num == num }))
}

// Resting says why nothing starts at home, if all machines rest; "" if one works.
func (b *Book) Resting() string { return b.machines.Resting() }

// MachinesChanged has those tasks looked at again that no machine could take.
func (b *Book) MachinesChanged() { b.unstick() }

// taskOf finds the task of a home attempt; nil if the job is forgotten.
func (b *Book) taskOf(id executor.ID) (uint64, *Task) {
	job, err := b.attempts.Parse(id.Job)
	if err != nil {
		return 0, nil
	}
	h := b.jobs[job.Num]
	if h == nil || int(id.Task) >= len(h.Tasks) {
		return 0, nil
	}
	return job.Num, &h.Tasks[id.Task]
}
