package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/keys"
	"github.com/cloudshare/cloudshare/node/record"
)

// pendingJob is a job on its way to the federation's queue.
type pendingJob struct {
	spec    command.JobSpec
	reason  string
	key     keys.Name
	keyed   bool
	reply   func(node.Answer) // nil once answered
	repeats []func(node.Answer)
	// promised: a client was told that the job is durable here. Invariant: it
	// then stays in the journal until the order has it.
	promised bool
	// recovered: an earlier life of the broker took it, and may have sent it.
	recovered bool
}

// publication is a group of jobs that one Submit command publishes. Its record
// is synced before the command is sent, and deleted once the state has the jobs.
type publication struct {
	jobs  []pendingJob
	since time.Time
	sent  bool
	bytes int // of its jobs in memory, see pendingJob.bytes
	// after: not to be sent before, by clock.boot, which nobody sets; a full queue is
	// asked again later.
	after int64
	// cancels are jobs whose owner cancelled them before they were published.
	cancels []uint64
}

// publicationBook holds what is on its way.
type publicationBook struct {
	open []pendingJob // of this turn, not yet in a group
	// order holds the groups, oldest first.
	order []*publication
	byJob map[uint64]*publication
	// nums are all of byJob, ascending.
	nums []uint64
	// bytes of the jobs in order, openBytes of those in open that a user submitted
	// in this turn. Invariant: together at most maxPubBytes when one is accepted.
	bytes, openBytes int
}

const (
	// maxPubBytes bounds the jobs that are on their way, in memory: without a quorum
	// there is no other end to what a site would accept. It holds some 300,000 small
	// jobs, which is far more than a quorum ever leaves waiting.
	maxPubBytes = 256 << 20
	// pendingBytes is what a job on its way takes besides its spec: the record of it,
	// its places in the maps, and who waits for its answer.
	pendingBytes = 640
)

// bytes is about what a job takes in memory while it is on its way.
func (j *pendingJob) bytes() int { return j.spec.SizeBound() + pendingBytes }

// room says why a job cannot be taken in, or nil.
func (b *publicationBook) room(js *command.JobSpec) error {
	if n := b.bytes + b.openBytes; n+js.SizeBound()+pendingBytes > maxPubBytes {
		return fmt.Errorf("%w: %d jobs of this site (%d MiB, at most %d) are on their way to the federation already: try again when it has taken them",
			node.ErrFull, len(b.byJob)+len(b.open), n>>20, maxPubBytes>>20)
	}
	return nil
}

func (b *publicationBook) empty() bool { return len(b.open) == 0 && len(b.order) == 0 }

// find returns a job that is on its way.
func (b *publicationBook) find(num uint64) *pendingJob {
	if p := b.byJob[num]; p != nil {
		return &p.jobs[num-p.jobs[0].spec.Num]
	}
	for i := range b.open {
		if b.open[i].spec.Num == num {
			return &b.open[i]
		}
	}
	return nil
}

// addRepeat has a repeat answered together with the original.
func (b *publicationBook) addRepeat(num uint64, reply func(node.Answer)) bool {
	job := b.find(num)
	if job == nil {
		return false
	}
	job.repeats = append(job.repeats, reply)
	return true
}

// journalPublications binds the jobs accepted in this turn into groups, and
// has them synced before anything is sent (architecture D5).
func (c *Core) journalPublications(fx *Effects) {
	jobs := c.pubs.open
	c.pubs.open, c.pubs.openBytes = nil, 0
	for _, p := range c.group(jobs, 0, fx) {
		fx.Publishes = true
		if c.Alone() {
			c.answerSite(p, fx)
		}
	}
}

// group binds jobs into groups that are not sent before a moment, and has them
// synced.
func (c *Core) group(jobs []pendingJob, after int64, fx *Effects) (groups []*publication) {
	for len(jobs) > 0 {
		n := groupSize(jobs)
		p := &publication{jobs: jobs[:n:n], since: c.now.Wall, after: after}
		jobs = jobs[n:]
		c.addPublication(p)
		fx.Writes = append(fx.Writes, record.Put(record.BucketPublishing, record.Number(p.jobs[0].spec.Num), c.encodePublication(p)))
		groups = append(groups, p)
	}
	return groups
}

// groupSize returns how many of the first jobs make one command, which is never longer than
// a command may be. Numbers within a group are without gaps: home runs and refusals
// start a new one.
func groupSize(jobs []pendingJob) int {
	size := 0
	for i, j := range jobs {
		size += j.spec.SizeBound() // not its payload alone: lists of sites and selectors can be longer
		gap := i > 0 && j.spec.Num != jobs[i-1].spec.Num+1
		if i == publishJobs || gap || (i > 0 && size > publishBytes) {
			return i
		}
	}
	return len(jobs)
}

func (c *Core) addPublication(p *publication) {
	c.pubs.enlist(p)
	c.pubs.order = append(c.pubs.order, p)
	for i := range p.jobs {
		c.pubs.byJob[p.jobs[i].spec.Num] = p
		p.bytes += p.jobs[i].bytes()
	}
	c.pubs.bytes += p.bytes
}

// submitOf has the jobs of some groups published, in their order.
func submitOf(groups ...*publication) *command.Submit {
	cmd := &command.Submit{}
	for _, p := range groups {
		for i := range p.jobs {
			cmd.Jobs = append(cmd.Jobs, p.jobs[i].spec)
		}
	}
	return cmd
}

// encodePublication returns the journal's form of a group.
func (c *Core) encodePublication(p *publication) []byte {
	return command.Append(nil, command.Command{ID: command.ID{Site: c.site, Incarnation: 1, Seq: 1}, Body: submitOf(p)})
}

// publish sends the groups that were not sent in this incarnation. Those that are
// due together share commands: what a full queue refused, or a site alone has
// gathered one by one, is not sent one by one.
func (c *Core) publish() {
	var due []*publication
	jobs, bytes, settled := 0, 0, uint64(0)
	for _, p := range c.pubs.order {
		if p.sent || c.now.Boot < p.after {
			continue
		}
		if settled == 0 {
			settled = c.settledBelow()
		}
		if len(due) > 0 && (jobs+len(p.jobs) > publishJobs || bytes+p.bytes > publishBytes) {
			c.send(due, settled)
			due, jobs, bytes = nil, 0, 0
		}
		p.sent = true
		due, jobs, bytes = append(due, p), jobs+len(p.jobs), bytes+p.bytes
	}
	if len(due) > 0 {
		c.send(due, settled)
	}
}

// send has some groups ordered with one command, and each told of its own jobs.
func (c *Core) send(groups []*publication, settled uint64) {
	cmd := submitOf(groups...)
	cmd.Settled = settled
	c.out.add(cmd, func(r command.Result, s StateReader, fx *Effects) {
		codes := r.Jobs
		var again []pendingJob
		for _, p := range groups {
			if codes != nil {
				r.Jobs, codes = codes[:len(p.jobs):len(p.jobs)], codes[len(p.jobs):]
			}
			again = append(again, c.handlePublished(p, r, s, fx)...)
		}
		c.keepPromises(again, fx)
		for _, p := range groups {
			for _, num := range p.cancels {
				c.cancelWaiting(num, fx)
			}
		}
	})
}

// handlePublished answers the clients of a group that the order has taken. It returns
// the jobs that were refused though they were promised.
func (c *Core) handlePublished(p *publication, r command.Result, s StateReader, fx *Effects) (again []pendingJob) {
	c.pubs.remove(p)
	done := record.Tidy(record.BucketPublishing, record.Number(p.jobs[0].spec.Num)) // a repeat is recognised
	for i := range p.jobs {
		code := r.Code
		if code == command.OK && r.Jobs != nil {
			code = r.Jobs[i]
		}
		if SubmitError(code) != nil && p.jobs[i].promised {
			again = append(again, p.jobs[i])
			done.Lazy = false // its record goes with the commit that brings the next one
			continue
		}
		// A job that a client is told to be refused must not come back with the
		// next start of the broker.
		done.Lazy = done.Lazy && SubmitError(code) == nil
		c.answer(&p.jobs[i], code, s, fx)
	}
	fx.Writes = append(fx.Writes, done)
	return again
}

// remove takes a group out. It is nearly always the oldest: a site that was
// alone may have hundreds of thousands, so nothing is moved then.
func (b *publicationBook) remove(p *publication) {
	b.delist(p)
	b.bytes -= p.bytes
	for i := range p.jobs {
		delete(b.byJob, p.jobs[i].spec.Num)
	}
	if i := slices.Index(b.order, p); i == 0 {
		b.order[0], b.order = nil, b.order[1:]
	} else if i > 0 {
		b.order = slices.Delete(b.order, i, i+1)
	}
}

// fullPause is the least time that a job that was promised waits when the queue is
// full; at most it waits twice as long, so that many wait for the same moment.
const fullPause = 5 * time.Second

// keepPromises journals refused jobs again that clients were told to be durable.
func (c *Core) keepPromises(jobs []pendingJob, fx *Effects) {
	c.group(jobs, (c.now.Boot/int64(fullPause)+2)*int64(fullPause), fx)
}

func (c *Core) answer(j *pendingJob, code command.Code, s StateReader, fx *Effects) {
	id := command.JobID{Site: c.site, Num: j.spec.Num}
	a := node.Answer{ID: id, State: fsm.Queued.String(), Reason: j.reason, Durability: node.DurableFederation}
	if err := SubmitError(code); err != nil {
		a = node.Answer{Err: cmp.Or(node.RefusedByQuota(code, c.site, &j.spec, s), fmt.Errorf("publish job %s: %w", id, err))}
		if j.keyed {
			c.keys.Drop(j.key, &fx.Writes)
		}
	} else if v, ok := s.Job(id); ok {
		a.State, a.Reason = v.State.String(), v.Reason
	}
	c.reply(j, a, fx)
}

// reply answers a job's first request and its repeats, once.
func (c *Core) reply(j *pendingJob, a node.Answer, fx *Effects) {
	if j.reply != nil {
		fx.reply(j.reply, a)
		j.reply = nil
	}
	a.Replayed = true
	for _, repeat := range j.repeats {
		fx.reply(repeat, a)
	}
	j.repeats = nil
}

// SubmitError translates what the state said of a job; nil if it has the job.
func SubmitError(code command.Code) error {
	switch {
	case code == command.OK || code == command.JobExists || code == command.JobRetired:
		// A retired number was published before a restart, and has ended.
		return nil
	case code.Quota() != "":
		return fmt.Errorf("%w: %s", node.ErrFull, code)
	}
	return fmt.Errorf("%w: %s", node.ErrNotReady, code)
}

// ackTimedOut tells clients that wait too long that their job is durable here.
func (c *Core) ackTimedOut(fx *Effects) {
	for _, p := range c.pubs.order {
		if c.now.Wall.Sub(p.since) < publishPatience {
			return
		}
		c.answerSite(p, fx)
	}
}

// answerSite acknowledges a group from the journal.
func (c *Core) answerSite(p *publication, fx *Effects) {
	for i := range p.jobs {
		p.jobs[i].promised = true
		c.reply(&p.jobs[i], node.Answer{
			ID: command.JobID{Site: c.site, Num: p.jobs[i].spec.Num}, State: fsm.Queued.String(),
			Reason: Unpublished, Durability: node.DurableSite,
		}, fx)
	}
}

// enlist adds the jobs of a group to the numbers of those on their way. A
// group's numbers are without gaps.
func (b *publicationBook) enlist(p *publication) {
	i, _ := slices.BinarySearch(b.nums, p.jobs[0].spec.Num)
	b.nums = slices.Insert(b.nums, i, make([]uint64, len(p.jobs))...)
	for k := range p.jobs {
		b.nums[i+k] = p.jobs[k].spec.Num
	}
}

// delist takes them out again.
func (b *publicationBook) delist(p *publication) {
	if i, ok := slices.BinarySearch(b.nums, p.jobs[0].spec.Num); ok && i == 0 {
		b.nums = b.nums[len(p.jobs):] // as nearly always
	} else if ok {
		b.nums = slices.Delete(b.nums, i, i+len(p.jobs))
	}
}
