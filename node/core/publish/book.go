// Package publish brings a site's jobs into the federation's queue (step 3): accepted jobs
// are bound into groups, each group is synced before it is sent, and sent again until the
// state has its jobs. Clients are answered when the order has their job, or, when that takes
// too long, from the journal.
package publish

import (
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/keys"
	"github.com/cloudshare/cloudshare/node/core/numbers"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

// Job is a job on its way to the federation's queue.
type Job struct {
	Spec   command.JobSpec
	Reason string
	Key    keys.Name
	Keyed  bool
	Reply  func(node.Answer) // nil once answered
	// Promised: a client was told that the job is durable here. Invariant: it
	// then stays in the journal until the order has it.
	Promised bool
	// User is whose job it is, "" = the site's own. Held: it waits for its user's turn, and has not been sent.
	User string
	Held bool
	// Recovered: an earlier life of the broker took it, and may have sent it.
	Recovered bool
	repeats   []func(node.Answer)
}

// publication is a group of jobs that one Submit command publishes. Its record
// is synced before the command is sent, and deleted once the state has the jobs.
type publication struct {
	jobs  []Job
	since time.Time
	sent  bool
	bytes int // of its jobs in memory, see Job.bytes
	// after: not to be sent before, by clock.boot, which nobody sets; a full queue is
	// asked again later.
	after int64
	// cancels are jobs whose owner cancelled them on their way: what is cancelled before it is sent is cancelled in the
	// entry that publishes it, so that nothing of it begins.
	cancels []uint64
	// shared is the group's record if others have jobs in it as well; nil: it has one of its own, of all its jobs.
	shared *sharedRecord
	at     int // in the line of its user, while it is held
}

// Book holds what is on its way.
type Book struct {
	site string
	now  *turn.Clock
	out  *turn.Outbox
	keys *keys.Book
	// cancel cancels a job that is published now, cancelBehind one that the command added last publishes.
	cancel       func(num uint64, fx *turn.Effects)
	cancelBehind func(num uint64)
	// released is told of a held job that is to be published now, and returns how nice it is.
	released func(*Job) uint32
	lines    map[string]*line // of held jobs, by user
	// heldBytes of these, by user: one has at most one of partsHeld parts of most.
	heldBytes map[string]int

	open []Job // of this turn, not yet in a group
	// order holds the groups that are not held, oldest first.
	order []*publication
	byJob map[uint64]*publication
	nums  numbers.List // all of byJob
	// bytes of the jobs in order, openBytes of those in open that a user submitted
	// in this turn. Invariant: together at most most when one is accepted.
	bytes, openBytes int
	most             int
}

const (
	// Patience is how long a client waits for the quorum before it is
	// told that its job is durable at this site only; the job goes on to the
	// federation all the same.
	Patience = 5 * time.Second
	// One Submit command holds at most so many jobs and about so many bytes.
	maxJobs  = 1000
	maxBytes = 512 << 10
	// Unpublished is why a job waits that may not, or cannot, run at its site.
	Unpublished = "no quorum now: kept at this site; it is published, and can start, as soon as there is one"
	// maxWaitingBytes bounds the jobs that are on their way, in memory: without a quorum
	// there is no other end to what a site would accept. It holds some 300,000 small
	// jobs, which is far more than a quorum ever leaves waiting.
	maxWaitingBytes = 256 << 20
	// partsHeld: a user's held jobs have one of so many parts of that, so that they lock nobody else out.
	partsHeld = 4
	// pendingBytes is what a job on its way takes besides its spec: the record of it,
	// its places in the maps, and who waits for its answer.
	pendingBytes = 640
)

// NewBook returns the book of a site that publishes nothing yet. Jobs whose owner cancelled
// them on their way are handed to cancel or cancelBehind; see Book.
func NewBook(site string, now *turn.Clock, out *turn.Outbox, k *keys.Book,
	cancel func(num uint64, fx *turn.Effects), cancelBehind func(num uint64), released func(*Job) uint32,
) Book {
	return Book{
		site: site, now: now, out: out, keys: k, cancel: cancel, cancelBehind: cancelBehind,
		byJob: map[uint64]*publication{}, released: released, lines: map[string]*line{},
		heldBytes: map[string]int{}, most: maxWaitingBytes,
	}
}

// bytes returns about what a job takes in memory while it is on its way.
func (j *Job) bytes() int { return j.Spec.SizeBound() + pendingBytes }

// Room says why a job cannot be taken in, or nil.
func (b *Book) Room(js *command.JobSpec, user string) error {
	if n := b.heldBytes[user]; user != "" && n+js.SizeBound()+pendingBytes > b.most/partsHeld {
		return fmt.Errorf("%w: %d MiB of jobs of user %s are held at this site (at most %d) until it is the user's turn: try again when some have run",
			node.ErrFull, n>>20, user, b.most/partsHeld>>20)
	}
	if n := b.bytes + b.openBytes; n+js.SizeBound()+pendingBytes > b.most {
		return fmt.Errorf("%w: %d jobs of this site (%d MiB, at most %d) are on their way to the federation already: try again when it has taken them",
			node.ErrFull, len(b.byJob)+len(b.open), n>>20, b.most>>20)
	}
	return nil
}

// Bytes returns about what the jobs in groups take in memory.
func (b *Book) Bytes() int { return b.bytes }

// Limit bounds what the jobs on their way may take in memory.
func (b *Book) Limit(most int) { b.most = most }

// Idle reports whether nothing is on its way but what is held.
func (b *Book) Idle() bool {
	return len(b.order) == 0 && !slices.ContainsFunc(b.open, func(j Job) bool { return !j.Held })
}

// Len returns how many jobs are in groups that the state does not have yet.
func (b *Book) Len() int { return len(b.byJob) }

// OpenNumbers returns those of the jobs accepted in this turn.
func (b *Book) OpenNumbers() (nums []uint64) {
	for i := range b.open {
		nums = append(nums, b.open[i].Spec.Num)
	}
	return nums
}

// Opened returns how many jobs were accepted in this turn.
func (b *Book) Opened() int { return len(b.open) }

// Accept takes a job that a user submitted.
func (b *Book) Accept(j Job) {
	b.open = append(b.open, j)
	b.openBytes += j.bytes()
	b.countHeld(&j, j.bytes())
}

// countHeld counts a job's bytes for its user, if it is held.
func (b *Book) countHeld(j *Job, bytes int) {
	if !j.Held {
		return
	}
	if b.heldBytes[j.User] += bytes; b.heldBytes[j.User] == 0 {
		delete(b.heldBytes, j.User)
	}
}

// Move takes a job that was durable here before.
func (b *Book) Move(spec command.JobSpec) {
	b.open = append(b.open, Job{Spec: spec, Promised: true})
}

// Cancel has a job cancelled with its publication, or right after it if it was sent; false: it is in no group.
func (b *Book) Cancel(num uint64) bool {
	p := b.byJob[num]
	if p == nil {
		return false
	}
	if i := p.index(num); p.jobs[i].Held { // nobody waits for what is cancelled
		p = b.take(p, i)
	}
	p.cancels = append(p.cancels, num)
	return true
}

// IsSent reports whether a job is in a group: its command may have been sent.
func (b *Book) IsSent(num uint64) bool { return b.byJob[num] != nil }

// SettledBelow returns the least number, below the given one, of a job on its way.
func (b *Book) SettledBelow(settled uint64) uint64 {
	if first, ok := b.nums.First(); ok {
		settled = min(settled, first)
	}
	return settled
}

// Find returns a job that is on its way.
func (b *Book) Find(num uint64) *Job {
	if p := b.byJob[num]; p != nil {
		return &p.jobs[p.index(num)]
	}
	for i := range b.open {
		if b.open[i].Spec.Num == num {
			return &b.open[i]
		}
	}
	return nil
}

// AddRepeat has a repeat answered together with the original.
func (b *Book) AddRepeat(num uint64, reply func(node.Answer)) bool {
	job := b.Find(num)
	if job == nil {
		return false
	}
	job.repeats = append(job.repeats, reply)
	return true
}

// index returns the place of one of the group's jobs.
func (p *publication) index(num uint64) int { return int(num - p.jobs[0].Spec.Num) }

// Journal binds the jobs accepted in this turn into groups, and has them synced before
// anything is sent (architecture D5). Those of a site alone, and those that are held, are acknowledged
// from the journal.
func (b *Book) Journal(alone bool, fx *turn.Effects) {
	jobs := b.open
	b.open, b.openBytes = nil, 0
	for _, p := range b.group(jobs, 0, fx) {
		fx.Publishes = true
		switch {
		case alone:
			b.answerSite(p, Unpublished, fx)
		case p.jobs[0].Held:
			b.answerSite(p, Held, fx)
		}
	}
}

// group binds jobs into groups that are not sent before a moment, and has them
// synced.
func (b *Book) group(jobs []Job, after int64, fx *turn.Effects) (groups []*publication) {
	for len(jobs) > 0 {
		n := groupSize(jobs)
		p := &publication{jobs: jobs[:n:n], since: b.now.Wall, after: after}
		jobs = jobs[n:]
		if p.jobs[0].Held {
			p.shared = &sharedRecord{first: p.jobs[0].Spec.Num, left: len(p.jobs)}
			b.add(p)
			b.hold(p)
		} else {
			b.queue(p)
		}
		fx.Writes = append(fx.Writes, record.Put(record.BucketPublishing, record.Number(p.jobs[0].Spec.Num),
			b.encode(p)))
		groups = append(groups, p)
	}
	return groups
}

// groupSize returns how many of the first jobs make one command, which is never longer than
// a command may be. Numbers within a group are without gaps: home runs and refusals
// start a new one. Held jobs of a group are of one user and priority.
func groupSize(jobs []Job) int {
	size := 0
	for i, j := range jobs {
		size += j.Spec.SizeBound() // not its payload alone: lists of sites and selectors can be longer
		gap := i > 0 && j.Spec.Num != jobs[i-1].Spec.Num+1
		if i == maxJobs || gap || i > 0 && !j.goesWith(&jobs[i-1]) || (i > 0 && size > maxBytes) {
			return i
		}
	}
	return len(jobs)
}

// queue puts a group at the end of what is to be sent.
func (b *Book) queue(p *publication) {
	b.add(p)
	b.order = append(b.order, p)
}

// add has the jobs of a group found by their numbers.
func (b *Book) add(p *publication) {
	b.nums.Add(p.jobs[0].Spec.Num, len(p.jobs)) // without gaps
	for i := range p.jobs {
		b.byJob[p.jobs[i].Spec.Num] = p
		p.bytes += p.jobs[i].bytes()
	}
	b.bytes += p.bytes
}

// submitOf has the jobs of some groups published, in their order.
func submitOf(groups ...*publication) *command.Submit {
	cmd := &command.Submit{}
	for _, p := range groups {
		for i := range p.jobs {
			cmd.Jobs = append(cmd.Jobs, p.jobs[i].Spec)
		}
	}
	return cmd
}

// encode returns the journal's form of a group.
func (b *Book) encode(p *publication) []byte {
	return command.Append(nil, command.Command{ID: command.ID{Site: b.site, Incarnation: 1, Seq: 1}, Body: submitOf(p)})
}
