package node

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// pendingJob is a job on its way to the federation's queue.
type pendingJob struct {
	spec    fsm.JobSpec
	reason  string
	key     keyName
	keyed   bool
	reply   func(Answer) // nil once answered
	repeats []func(Answer)
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
	// pendingBytes is what a job on its way takes beside its spec: the record of it,
	// its places in the maps, and who waits for its answer.
	pendingBytes = 640
)

// bytes is about what a job takes in memory while it is on its way.
func (j *pendingJob) bytes() int { return j.spec.SizeBound() + pendingBytes }

// room says why a job cannot be taken in, or nil.
func (b *publicationBook) room(js *fsm.JobSpec) error {
	if n := b.bytes + b.openBytes; n+js.SizeBound()+pendingBytes > maxPubBytes {
		return fmt.Errorf("%w: %d jobs of this site (%d MiB, at most %d) are on their way to the federation already: try again when it has taken them",
			ErrFull, len(b.byJob)+len(b.open), n>>20, maxPubBytes>>20)
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

// follow has a repeat answered together with the original.
func (b *publicationBook) follow(num uint64, reply func(Answer)) bool {
	job := b.find(num)
	if job == nil {
		return false
	}
	job.repeats = append(job.repeats, reply)
	return true
}

// journalPublications binds the jobs accepted in this turn into groups, and
// has them synced before anything is sent (architecture D5).
func (c *core) journalPublications(fx *effects) {
	jobs := c.pubs.open
	c.pubs.open, c.pubs.openBytes = nil, 0
	for _, p := range c.group(jobs, 0, fx) {
		fx.publishes = true
		if c.alone() {
			c.answerSite(p, fx)
		}
	}
}

// group binds jobs into groups that are not sent before a moment, and has them
// synced.
func (c *core) group(jobs []pendingJob, after int64, fx *effects) (groups []*publication) {
	for len(jobs) > 0 {
		n := groupSize(jobs)
		p := &publication{jobs: jobs[:n:n], since: c.now.wall, after: after}
		jobs = jobs[n:]
		c.addPublication(p)
		fx.writes = append(fx.writes, put(bucketPublishing, number(p.jobs[0].spec.Num), c.encodePublication(p)))
		groups = append(groups, p)
	}
	return groups
}

// groupSize is how many of the first jobs make one command, which is never longer than
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

func (c *core) addPublication(p *publication) {
	c.pubs.enlist(p)
	c.pubs.order = append(c.pubs.order, p)
	for i := range p.jobs {
		c.pubs.byJob[p.jobs[i].spec.Num] = p
		p.bytes += p.jobs[i].bytes()
	}
	c.pubs.bytes += p.bytes
}

// command has the jobs of some groups published, in their order.
func command(groups ...*publication) *fsm.Submit {
	cmd := &fsm.Submit{}
	for _, p := range groups {
		for i := range p.jobs {
			cmd.Jobs = append(cmd.Jobs, p.jobs[i].spec)
		}
	}
	return cmd
}

// encodePublication is the journal's form of a group.
func (c *core) encodePublication(p *publication) []byte {
	return fsm.AppendCommand(nil, fsm.Command{ID: fsm.CommandID{Site: c.site, Incarnation: 1, Seq: 1}, Body: command(p)})
}

// publish sends the groups that were not sent in this incarnation. Those that are
// due together share commands: what a full queue refused, or a site alone has
// gathered one by one, is not sent one by one.
func (c *core) publish() {
	var due []*publication
	jobs, bytes, settled := 0, 0, uint64(0)
	for _, p := range c.pubs.order {
		if p.sent || c.now.boot < p.after {
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
func (c *core) send(groups []*publication, settled uint64) {
	cmd := command(groups...)
	cmd.Settled = settled
	c.out.add(cmd, func(r fsm.Result, s stateReader, fx *effects) {
		codes := r.Jobs
		var again []pendingJob
		for _, p := range groups {
			if codes != nil {
				r.Jobs, codes = codes[:len(p.jobs):len(p.jobs)], codes[len(p.jobs):]
			}
			again = append(again, c.published(p, r, s, fx)...)
		}
		c.keepPromises(again, fx)
		for _, p := range groups {
			for _, num := range p.cancels {
				c.cancelWaiting(num, fx)
			}
		}
	})
}

// published answers the clients of a group that the order has taken. It returns
// the jobs that were refused though they were promised.
func (c *core) published(p *publication, r fsm.Result, s stateReader, fx *effects) (again []pendingJob) {
	c.pubs.remove(p)
	done := tidy(bucketPublishing, number(p.jobs[0].spec.Num)) // a repeat is recognised
	for i := range p.jobs {
		code := r.Code
		if code == fsm.OK && r.Jobs != nil {
			code = r.Jobs[i]
		}
		if submitError(code) != nil && p.jobs[i].promised {
			again = append(again, p.jobs[i])
			done.lazy = false // its record goes with the commit that brings the next one
			continue
		}
		// A job that a client is told to be refused must not come back with the
		// next start of the broker.
		done.lazy = done.lazy && submitError(code) == nil
		c.answer(&p.jobs[i], code, s, fx)
	}
	fx.writes = append(fx.writes, done)
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
func (c *core) keepPromises(jobs []pendingJob, fx *effects) {
	c.group(jobs, (c.now.boot/int64(fullPause)+2)*int64(fullPause), fx)
}

func (c *core) answer(j *pendingJob, code fsm.Code, s stateReader, fx *effects) {
	id := fsm.JobID{Site: c.site, Num: j.spec.Num}
	a := Answer{ID: id, State: fsm.Queued.String(), Reason: j.reason, Durability: DurableFederation}
	if err := submitError(code); err != nil {
		a = Answer{Err: cmp.Or(quotaError(code, c.site, &j.spec, s), fmt.Errorf("publish job %s: %w", id, err))}
		if j.keyed {
			c.keys.drop(j.key, fx)
		}
	} else if v, ok := s.Job(id); ok {
		a.State, a.Reason = v.State.String(), v.Reason
	}
	c.reply(j, a, fx)
}

// reply answers a job's first request and its repeats, once.
func (c *core) reply(j *pendingJob, a Answer, fx *effects) {
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

// submitError translates what the state said of a job; nil if it has the job.
func submitError(code fsm.Code) error {
	switch {
	case code == fsm.OK || code == fsm.JobExists || code == fsm.JobRetired:
		// A retired number was published before a restart, and has ended.
		return nil
	case code.Quota() != "":
		return fmt.Errorf("%w: %s", ErrFull, code)
	}
	return fmt.Errorf("%w: %s", ErrNotReady, code)
}

// impatient tells clients that wait too long that their job is durable here.
func (c *core) impatient(fx *effects) {
	for _, p := range c.pubs.order {
		if c.now.wall.Sub(p.since) < publishPatience {
			return
		}
		c.answerSite(p, fx)
	}
}

// answerSite acknowledges a group from the journal.
func (c *core) answerSite(p *publication, fx *effects) {
	for i := range p.jobs {
		p.jobs[i].promised = true
		c.reply(&p.jobs[i], Answer{
			ID: fsm.JobID{Site: c.site, Num: p.jobs[i].spec.Num}, State: fsm.Queued.String(),
			Reason: unpublished, Durability: DurableSite,
		}, fx)
	}
}
