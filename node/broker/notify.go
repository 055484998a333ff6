package broker

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/notices"
)

// notifier finds out which jobs have ended whose users want to be told, and has that sent.
type notifier struct {
	*process
	b      *Broker
	book   *notices.Book
	sender *notices.Sender
	kept   chan struct{} // has one while jobs were accepted that nobody has looked at
}

// newNotifier reads what earlier runs of the broker have left.
func newNotifier(b *Broker) (*notifier, error) {
	cfg := b.cfg.Notify
	cfg.Source = "/cloudshare/" + uuid.UUID(b.cfg.Genesis.Federation).String() + "/" + b.cfg.Site
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	book, err := notices.Open(cfg, b.cfg.Journal)
	if err != nil {
		return nil, err
	}
	warn := func(err error, msg string) { b.log.Warn().Err(err).Msg(msg) }
	return &notifier{
		process: b.process, b: b, book: book, sender: notices.New(book, warn), kept: make(chan struct{}, 1),
	}, nil
}

// start sends until the broker ends.
func (n *notifier) start() {
	n.goroutine(func() { n.sender.Run(n.ctx) })
	n.goroutine(n.watch)
}

// namesURLs reports whether somebody is to be told of what a request submits.
func namesURLs(r node.Request) bool { return len(r.Spec.Notify) > 0 }

// resolve refuses requests that name URLs that are not told. Like ownFiles.resolve, it returns what the core gets.
func (n *notifier) resolve(reqs []node.Request, reply func(int, node.Answer)) ([]node.Request, func(int, node.Answer)) {
	reqs = slices.Clone(reqs)
	for i, err := range n.book.Admit(reqs) {
		if reqs[i].Refused == nil {
			reqs[i].Refused = err
		}
	}
	return reqs, func(i int, a node.Answer) {
		if r := &reqs[i]; namesURLs(*r) && a.Err == nil && !a.Replayed {
			n.book.Keep(a.ID.Num, node.NewNotices(r.User, r.Spec.Notify))
			select {
			case n.kept <- struct{}{}:
			default:
			}
		}
		reply(i, a)
	}
}

const (
	// noticesEvery is how often all jobs are looked up whose end is to be told: after a start one may be on its way to
	// the state still, which has its end already. 100,000 take some 10 ms.
	noticesEvery = 10 * time.Second
	// noticesLook bounds the jobs that are looked at in one go.
	noticesLook = 1000
)

// watch looks which jobs have ended: those that events name, and now and then all. What an event does not tell, since
// the broker was not there, the state does.
func (n *notifier) watch() {
	select {
	case <-n.b.registrar.current:
	case <-n.ctx.Done():
		return
	}
	sub := n.b.Events(n.b.Feed().Now(), node.EventFilter{
		Kinds: map[fsm.EventKind]bool{fsm.EventJobEnded: true}, Site: n.b.cfg.Site,
	})
	tick := time.NewTicker(noticesEvery)
	defer tick.Stop()
	all := true
	for n.ctx.Err() == nil {
		events, more, err := sub.Look()
		all = all || err != nil
		n.tell(n.named(events))
		if all {
			n.tell(n.book.Unended())
			all = false
		}
		if err != nil || more == nil {
			continue
		}
		select {
		case <-more:
		case <-n.kept:
			all = true
		case <-tick.C:
			all = true
		case <-n.ctx.Done():
		}
	}
}

// named returns the jobs of this site that events say have ended, and whose users want to be told.
func (n *notifier) named(events []node.Event) (nums []uint64) {
	for i := range events {
		if id := events[i].Job; id.Site == n.b.cfg.Site && n.book.Has(id.Num) {
			nums = append(nums, id.Num)
		}
	}
	return nums
}

// tell has it sent of those jobs that have ended.
func (n *notifier) tell(nums []uint64) {
	for some := range slices.Chunk(nums, noticesLook) {
		ended, err := n.b.endedOf(some)
		jobs := make([]node.Job, 0, len(ended))
		for _, num := range ended {
			jobs = append(jobs, n.lastOf(num))
		}
		if err == nil {
			err = n.sender.End(jobs)
		}
		if err != nil && n.ctx.Err() == nil {
			n.log.Warn().Err(err).Msg("notices of ended jobs are late: looking again in 10 s")
		}
	}
}

// lastOf returns an ended job, or what is said of one that is no longer kept.
func (n *notifier) lastOf(num uint64) node.Job {
	id := command.JobID{Site: n.b.cfg.Site, Num: num}
	job, err := n.b.Reader.Job(n.ctx, id)
	if err != nil {
		return node.Job{
			ID: id, State: node.Retired, Reason: "the job has ended and is no longer kept: how it ended is not known here any more",
		}
	}
	return job
}

// endedOf returns which of this site's jobs have ended. One that neither the core nor the state knows has: it is looked
// for in the state last.
func (b *Broker) endedOf(nums []uint64) (ended []uint64, err error) {
	var unknown []uint64
	err = b.query(b.ctx, func(c *core.Core) {
		o := c.Own()
		for _, num := range nums {
			switch known, over := o.Standing(num); {
			case !known:
				unknown = append(unknown, num)
			case over:
				ended = append(ended, num)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	b.cfg.Replica.View(func(s *fsm.State) {
		for _, num := range unknown {
			c, known := s.TaskCounts(command.JobID{Site: b.cfg.Site, Num: num})
			if !known || c.JobState().Ended() {
				ended = append(ended, num)
			}
		}
	})
	return ended, nil
}

// Job returns a job; of one of this site also what is to be sent of its end, and what became of that.
func (b *Broker) Job(ctx context.Context, id command.JobID) (node.Job, error) {
	job, err := b.Reader.Job(ctx, id)
	if err == nil && id.Site == b.cfg.Site {
		n, _ := b.notify.book.Find(id.Num)
		job.Notices = n.List
	}
	return job, err
}

// Rerun makes the job that tries tasks of an earlier one again: those are told of its end who were to be told of that
// one's, as long as that is known.
func (b *Broker) Rerun(ctx context.Context, id command.JobID, q node.TaskQuery) (jobspec.Spec, error) {
	spec, err := b.Reader.Rerun(ctx, id, q)
	if n, known := b.notify.book.Find(id.Num); known && id.Site == b.cfg.Site {
		spec.Notify = n.Hooks()
	}
	return spec, err
}
