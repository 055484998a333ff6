package publish

import (
	"cmp"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

func (b *Book) answer(j *Job, code command.Code, s turn.StateReader, fx *turn.Effects) {
	id := command.JobID{Site: b.site, Num: j.Spec.Num}
	a := node.Answer{ID: id, State: fsm.Queued.String(), Reason: j.Reason, Durability: node.DurableFederation}
	if err := SubmitError(code); err != nil {
		a = node.Answer{Err: cmp.Or(node.RefusedByQuota(code, b.site, &j.Spec, s), fmt.Errorf("publish job %s: %w", id, err))}
		if j.Keyed {
			b.keys.Drop(j.Key, &fx.Writes)
		}
		fx.Writes = append(fx.Writes, record.Tidy(record.BucketNotices, record.Number(id.Num)),
			record.Tidy(record.BucketAttached, record.Number(id.Num)))
	} else if v, ok := s.Job(id); ok {
		a.State, a.Reason = v.State.String(), v.Reason
	}
	b.reply(j, a, fx)
}

// reply answers a job's first request and its repeats, once.
func (b *Book) reply(j *Job, a node.Answer, fx *turn.Effects) {
	if j.Reply != nil {
		fx.Reply(j.Reply, a)
		j.Reply = nil
	}
	a.Replayed = true
	for _, repeat := range j.repeats {
		fx.Reply(repeat, a)
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

// AckTimedOut tells clients that wait too long that their job is durable here.
func (b *Book) AckTimedOut(fx *turn.Effects) {
	for _, p := range b.order {
		if b.now.Wall.Sub(p.since) < Patience {
			return
		}
		b.answerSite(p, Unpublished, fx)
	}
}

// answerSite acknowledges a group from the journal, and says why it waits.
func (b *Book) answerSite(p *publication, reason string, fx *turn.Effects) {
	for i := range p.jobs {
		p.jobs[i].Promised = true
		b.reply(&p.jobs[i], node.Answer{
			ID: command.JobID{Site: b.site, Num: p.jobs[i].Spec.Num}, State: fsm.Queued.String(),
			Reason: reason, Durability: node.DurableSite,
		}, fx)
	}
}
