package node

import (
	"fmt"
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
}

// publication is a group of jobs that one Submit command publishes. Its record
// is synced before the command is sent, and deleted once the state has the jobs.
type publication struct {
	jobs  []pendingJob
	since time.Time
	sent  bool
	// after: not to be sent before; a full queue is asked again later.
	after time.Time
	// cancels are jobs whose owner cancelled them before they were published.
	cancels []cancelEvent
}

// publicationBook holds what is on its way.
type publicationBook struct {
	open []pendingJob // of this turn, not yet in a group
	// order holds the groups, oldest first.
	order []*publication
	byJob map[uint64]*publication
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
	c.pubs.open = nil
	for len(jobs) > 0 {
		n := groupSize(jobs)
		p := &publication{jobs: jobs[:n:n], since: c.now.wall}
		jobs = jobs[n:]
		c.addPublication(p)
		fx.publishes = true
		fx.writes = append(fx.writes, put(bucketPublishing, number(p.jobs[0].spec.Num), c.encodePublication(p)))
		if c.alone() {
			c.answerSite(p, fx)
		}
	}
}

// groupSize is how many of the first jobs make one command. Numbers within a
// group are without gaps: home runs and refusals start a new one.
func groupSize(jobs []pendingJob) int {
	size := 0
	for i, j := range jobs {
		size += len(j.spec.Payload) + 64
		gap := i > 0 && j.spec.Num != jobs[i-1].spec.Num+1
		if i == publishJobs || gap || (i > 0 && size > publishBytes) {
			return i
		}
	}
	return len(jobs)
}

func (c *core) addPublication(p *publication) {
	c.pubs.order = append(c.pubs.order, p)
	for i := range p.jobs {
		c.pubs.byJob[p.jobs[i].spec.Num] = p
	}
}

func (p *publication) command() *fsm.Submit {
	cmd := &fsm.Submit{Jobs: make([]fsm.JobSpec, len(p.jobs))}
	for i := range p.jobs {
		cmd.Jobs[i] = p.jobs[i].spec
	}
	return cmd
}

// encodePublication is the journal's form of a group.
func (c *core) encodePublication(p *publication) []byte {
	return fsm.AppendCommand(nil, fsm.Command{ID: fsm.CommandID{Site: c.site, Incarnation: 1, Seq: 1}, Body: p.command()})
}

// publish sends the groups that were not sent in this incarnation.
func (c *core) publish() {
	for _, p := range c.pubs.order {
		if p.sent || c.now.wall.Before(p.after) {
			continue
		}
		p.sent = true
		cmd := p.command()
		cmd.Settled = c.settledBelow()
		c.out.add(cmd, func(r fsm.Result, s stateReader, fx *effects) { c.published(p, r, s, fx) })
	}
}

// published answers the clients of a group that the order has taken.
func (c *core) published(p *publication, r fsm.Result, s stateReader, fx *effects) {
	done := tidy(bucketPublishing, number(p.jobs[0].spec.Num)) // a repeat is recognised
	var again []pendingJob
	for i := range p.jobs {
		code := r.Code
		if code == fsm.OK && r.Jobs != nil {
			code = r.Jobs[i]
		}
		delete(c.pubs.byJob, p.jobs[i].spec.Num)
		if submitError(code) != nil && p.jobs[i].promised {
			again = append(again, p.jobs[i])
			continue
		}
		// A job that a client is told to be refused must not come back with the
		// next start of the broker.
		done.lazy = done.lazy && submitError(code) == nil
		c.answer(&p.jobs[i], code, s, fx)
	}
	fx.writes = append(fx.writes, done)
	for i, other := range c.pubs.order {
		if other == p {
			c.pubs.order = append(c.pubs.order[:i], c.pubs.order[i+1:]...)
			break
		}
	}
	c.keepPromises(again, fx)
	for _, cancel := range p.cancels {
		c.cancel(cancel, fx)
	}
}

// fullPause is how long a job that was promised waits when the queue is full.
const fullPause = 5 * time.Second

// keepPromises journals refused jobs again that clients were told to be durable.
func (c *core) keepPromises(jobs []pendingJob, fx *effects) {
	for i := range jobs {
		p := &publication{jobs: jobs[i : i+1 : i+1], since: c.now.wall, after: c.now.wall.Add(fullPause)}
		c.addPublication(p)
		fx.writes = append(fx.writes, put(bucketPublishing, number(jobs[i].spec.Num), c.encodePublication(p)))
	}
}

func (c *core) answer(j *pendingJob, code fsm.Code, s stateReader, fx *effects) {
	id := fsm.JobID{Site: c.site, Num: j.spec.Num}
	a := Answer{ID: id, State: fsm.Queued.String(), Reason: j.reason, Durability: DurableFederation}
	if err := submitError(code); err != nil {
		a = Answer{Err: fmt.Errorf("publish job %s: %w", id, err)}
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
	switch code {
	case fsm.OK, fsm.JobExists, fsm.JobRetired:
		// A retired number was published before a restart, and has ended.
		return nil
	case fsm.TooManyShapes, fsm.TooManyJobs:
		return fmt.Errorf("%w: %s", ErrFull, code)
	default:
		return fmt.Errorf("%w: %s", ErrNotReady, code)
	}
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
			Reason: "no quorum now: kept at this site, published as soon as there is one", Durability: DurableSite,
		}, fx)
	}
}
