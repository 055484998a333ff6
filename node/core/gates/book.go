package gates

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/followers"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// Job is a gated job of this site that has not ended, as far as this broker knows.
type Job struct {
	num   uint64
	count uint32
	rules Rules
	// unreadable is why its rules are not known, "" = they are. Then nothing of it is released: another version of the
	// broker may be able to read them.
	unreadable string
	// Hold: a user holds it. Invariant: the journal has it, and the following.
	Hold bool
	// cancelled are tasks that were cancelled before the state had the job, in order and disjoint, and cancelWhy why.
	cancelled []fsm.TaskRun
	cancelWhy string
	// gated: it is so by its own rules, or in the state.
	gated bool
	// counts of its tasks when it was looked at last.
	counts fsm.Counts
	// nextMs is when it is looked at again, in the state's time; 0 = when its counts have changed.
	nextMs int64
	// pieces is how many runs and single tasks the last look has passed over, and restUntil when the next one may be,
	// by Now.Boot.
	pieces    int
	restUntil int64
	// dirty: it is in Book.dirty.
	dirty bool
	// at is its place in Book.watched.
	at int
	// Waiting is why tasks were held when it was looked at last.
	Waiting Waiting
}

// target is a job whose tasks others wait for, one by one.
type target struct {
	num uint64
	// jobs are those that wait. Invariant: not empty.
	jobs []uint64
	Elements
	// over: Elements change no more. Invariant: the journal has them.
	over   bool
	counts fsm.Counts
	// missed is since when nobody knows it, by clock.Boot, 0 = somebody does.
	missed int64
}

// Site is what the book asks of the rest of the core.
type Site struct {
	Name string
	Now  *turn.Clock
	Out  *turn.Outbox
	// Read reads the spec of a job of this site.
	Read func(js *command.JobSpec) (jobspec.Spec, error)
	// Pending reports whether a job is on its way to the federation, or waits for others before.
	Pending func(num uint64) bool
	// Own returns how many tasks of a job are in which state that runs at home, or never will run, and how to read how
	// each stands; false: there is none of that number.
	Own func(num uint64) (fsm.Counts, func() Elements, bool)
}

// Book holds this site's gated jobs, and has their tasks released in the state. One goroutine has it, the core's.
type Book struct {
	Site
	jobs    map[uint64]*Job
	targets map[uint64]*target
	// recorded are elements that the journal has; those of no target are removed once all jobs are known.
	recorded map[uint64]Elements
	asked    map[uint64]asked // in an earlier run of the broker
	// cancelled counts the runs of all jobs' cancelled. Invariant: at most maxAllCancelled when some are added.
	cancelled int
	// watched are the jobs in any order, next the one to be looked at next.
	watched []*Job
	next    int
	dirty   []*Job
	timers  map[*Job]bool // jobs with a nextMs
	// soonestMs is not after any of these, 0 = none has one.
	soonestMs int64
	// sending: a Release is being ordered. Nothing is decided until its outcome is known.
	sending bool
	// returned is the entry up to which returned tasks were looked at.
	returned uint64
	// The state's time when it was last seen to move, and the clock then.
	stateMs, stateBoot int64
	// past is who has waited for the tasks of which job, and has ended.
	past followers.Book
	told []node.Event
	emit func([]node.Event)
}

// NewBook returns the book of a site without gated jobs.
func NewBook(s Site) Book {
	return Book{
		Site: s, jobs: map[uint64]*Job{}, targets: map[uint64]*target{}, recorded: map[uint64]Elements{},
		asked: map[uint64]asked{}, timers: map[*Job]bool{},
	}
}

// Find returns a gated job that has not ended, nil if there is none of that number.
func (b *Book) Find(num uint64) *Job { return b.jobs[num] }

// Len returns how many gated jobs there are.
func (b *Book) Len() int { return len(b.jobs) }

// Add takes a job, wherever it is on its way, if it is gated or was held by hand. To do it twice changes nothing.
func (b *Book) Add(js *command.JobSpec) {
	if _, was := b.asked[js.Num]; js.Gated || was {
		b.add(js)
	}
}

func (b *Book) add(js *command.JobSpec) {
	if b.jobs[js.Num] != nil {
		return
	}
	spec, err := b.Read(js)
	was := b.asked[js.Num]
	j := &Job{
		num: js.Num, count: js.Count, rules: RulesOf(command.JobID{Site: b.Name, Num: js.Num}, &spec),
		at: len(b.watched), gated: js.Gated, Hold: was.Hold, cancelled: was.Cancelled, cancelWhy: was.Why,
	}
	if err != nil {
		j.unreadable = err.Error()
	}
	b.cancelled += len(j.cancelled)
	delete(b.asked, js.Num)
	b.jobs[js.Num] = j
	b.watched = append(b.watched, j)
	for _, id := range j.rules.Each {
		t := b.targets[id.Num]
		if t == nil {
			t = &target{num: id.Num}
			if e, known := b.recorded[id.Num]; known {
				t.Elements, t.over = e, true
				delete(b.recorded, id.Num)
			}
			b.targets[id.Num] = t
		}
		t.jobs = append(t.jobs, js.Num)
	}
	b.mark(j)
}

// drop forgets a job that has ended.
func (b *Book) drop(j *Job, fx *turn.Effects) {
	if j.Asked() {
		fx.Writes = append(fx.Writes, record.Tidy(record.BucketGates, record.Number(j.num)))
	}
	b.cancelled -= len(j.cancelled)
	delete(b.jobs, j.num)
	delete(b.timers, j)
	last := len(b.watched) - 1
	b.watched[j.at], b.watched[last].at = b.watched[last], j.at
	b.watched[last], b.watched = nil, b.watched[:last]
	for _, id := range j.rules.Each {
		b.past.Add(id.Num, j.num)
		t := b.targets[id.Num]
		t.jobs = slices.DeleteFunc(t.jobs, func(num uint64) bool { return num == j.num })
		if len(t.jobs) > 0 {
			continue
		}
		delete(b.targets, id.Num)
		if t.over {
			fx.Writes = append(fx.Writes, record.Tidy(record.BucketElements, record.Number(id.Num)))
		}
	}
}

// mark has a job looked at.
func (b *Book) mark(j *Job) {
	if !j.dirty {
		j.dirty = true
		b.dirty = append(b.dirty, j)
	}
}

// Tell has an event of one of this site's jobs told that the state does not tell.
func (b *Book) Tell(e fsm.Event) { b.told = append(b.told, node.Event{Event: e, At: b.Now.Wall}) }

// SetEmit has events of held jobs given to those who read, once they are durable.
func (b *Book) SetEmit(tell func([]node.Event)) { b.emit = tell }

// FlushEvents hands what was told to the feed once this turn's writes are durable.
func (b *Book) FlushEvents(fx *turn.Effects) {
	told := b.told
	if b.told = nil; b.emit != nil && len(told) > 0 {
		fx.Replies = append(fx.Replies, func() { b.emit(told) })
	}
}

// Recover reads what earlier runs of the broker have recorded; the jobs come with Add.
func (b *Book) Recover(j record.Reader) error {
	if err := j.Each(record.BucketGates, b.recoverAsked); err != nil {
		return err
	}
	return j.Each(record.BucketElements, func(k, v []byte) error {
		if len(k) != 8 {
			return fmt.Errorf("ends of job %x: malformed", k)
		}
		e, err := DecodeElements(v)
		if err != nil {
			return fmt.Errorf("ends of job %d: %w", record.DecodeNumber(k), err)
		}
		b.recorded[record.DecodeNumber(k)] = e
		return nil
	})
}

// Recovered forgets what no job needs: all of them have been added.
func (b *Book) Recovered(fx *turn.Effects) {
	for num := range b.asked {
		fx.Writes = append(fx.Writes, record.Tidy(record.BucketGates, record.Number(num)))
	}
	for num := range b.recorded {
		fx.Writes = append(fx.Writes, record.Tidy(record.BucketElements, record.Number(num)))
	}
	clear(b.asked)
	clear(b.recorded)
	for _, j := range b.watched {
		b.mark(j)
	}
	b.returned = 0
}

// Check returns an error if the lists of the book are not those of its jobs. Tests ask after every turn.
func (b *Book) Check() error {
	refs, cancelled := 0, 0
	for num, j := range b.jobs {
		cancelled += len(j.cancelled)
		marked := slices.Contains(b.dirty, j)
		if j.num != num || b.watched[j.at] != j || j.dirty != marked || b.timers[j] != (j.nextMs > 0) {
			return fmt.Errorf("gated job %d: %+v", num, j)
		}
		for _, id := range j.rules.Each {
			refs++
			if t := b.targets[id.Num]; t == nil || !slices.Contains(t.jobs, num) {
				return fmt.Errorf("gated job %d waits for job %d, which does not know that", num, id.Num)
			}
		}
	}
	for num, t := range b.targets {
		if refs -= len(t.jobs); len(t.jobs) == 0 {
			return fmt.Errorf("nobody waits for job %d", num)
		}
	}
	if refs != 0 || len(b.watched) != len(b.jobs) || cancelled != b.cancelled {
		return fmt.Errorf("%d waits too many, %d jobs watched of %d, %d runs are cancelled, counted %d",
			refs, len(b.watched), len(b.jobs), cancelled, b.cancelled)
	}
	return nil
}

// All yields the gated jobs that have not ended, in any order.
func (b *Book) All() iter.Seq2[uint64, *Job] { return maps.All(b.jobs) }
