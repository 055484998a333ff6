package broker

import (
	"context"
	"slices"

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
	ended  *endedJobs
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
	n := &notifier{process: b.process, b: b, book: book, sender: notices.New(book, warn)}
	n.ended = &endedJobs{
		process: b.process, b: b, book: book, take: n.tell, kept: make(chan struct{}, 1),
		late: "notices of ended jobs are late: looking again in 10 s",
	}
	return n, nil
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
			n.ended.keep(a.ID.Num)
		}
		reply(i, a)
	}
}

// watch looks which jobs have ended whose users want to be told.
func (n *notifier) watch() {
	select {
	case <-n.b.registrar.current:
		n.ended.watch()
	case <-n.ctx.Done():
	}
}

// tell has it sent of jobs that have ended.
func (n *notifier) tell(nums []uint64) error {
	jobs := make([]node.Job, 0, len(nums))
	for _, num := range nums {
		jobs = append(jobs, n.lastOf(num))
	}
	return n.sender.End(jobs)
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

// Why says why a job waits; of one of this site also which notices of its end were not delivered, and what priority it
// is to have.
func (b *Broker) Why(ctx context.Context, id command.JobID) (node.Why, error) {
	w, err := b.Reader.Why(ctx, id)
	if err != nil || id.Site != b.cfg.Site {
		return w, err
	}
	if n, known := b.notify.book.Find(id.Num); known {
		w.Notices = n.Undelivered()
	}
	if to := b.PriorityWords(ctx, id.Num); to != "" {
		w.Summary += "; " + to
	}
	return w, nil
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
