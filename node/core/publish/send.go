package publish

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

// Publish sends the groups that were not sent in this incarnation; settledBelow is asked
// for the number below which this site publishes nothing else. Those that are
// due together share commands: what a full queue refused, or a site alone has
// gathered one by one, is not sent one by one.
func (b *Book) Publish(settledBelow func() uint64) {
	var due []*publication
	jobs, bytes, cancels, settled := 0, 0, 0, uint64(0)
	for _, p := range b.order {
		if p.sent || b.now.Boot < p.after {
			continue
		}
		if settled == 0 {
			settled = settledBelow()
		}
		if len(due) > 0 && (jobs+len(p.jobs) > maxJobs || bytes+p.bytes > maxBytes ||
			cancels+len(p.cancels) > turn.MaxBehind) {
			b.send(due, settled)
			due, jobs, bytes, cancels = nil, 0, 0, 0
		}
		p.sent = true
		due, jobs, bytes, cancels = append(due, p), jobs+len(p.jobs), bytes+p.bytes, cancels+len(p.cancels)
	}
	if len(due) > 0 {
		b.send(due, settled)
	}
}

// send proposes several groups in one command, and gives each group the results of its own jobs.
func (b *Book) send(groups []*publication, settled uint64) {
	cmd := submitOf(groups...)
	cmd.Settled = settled
	b.out.Add(cmd, func(r command.Result, s turn.StateReader, fx *turn.Effects) {
		codes := r.Jobs
		var again []Job
		for _, p := range groups {
			if codes != nil {
				r.Jobs, codes = codes[:len(p.jobs):len(p.jobs)], codes[len(p.jobs):]
			}
			again = append(again, b.handlePublished(p, r, s, fx)...)
		}
		b.keepPromises(again, fx)
		for _, p := range groups {
			for _, num := range p.cancels {
				b.cancel(num, fx)
			}
		}
	})
	for _, p := range groups {
		n := min(len(p.cancels), turn.MaxBehind) // more are cancelled once they are published
		for _, num := range p.cancels[:n] {
			b.cancelBehind(num)
		}
		p.cancels = p.cancels[n:]
	}
}

// handlePublished answers the clients of a group that the order has taken. It returns
// the jobs that were refused though they were promised.
func (b *Book) handlePublished(p *publication, r command.Result, s turn.StateReader, fx *turn.Effects) (again []Job) {
	b.remove(p)
	if p.shared != nil {
		b.handleShared(p, r, s, fx)
		return nil
	}
	done := record.Tidy(record.BucketPublishing, record.Number(p.jobs[0].Spec.Num)) // a repeat is recognised
	for i := range p.jobs {
		code := codeOf(r, i)
		if SubmitError(code) != nil && p.jobs[i].Promised {
			again = append(again, p.jobs[i])
			done.Lazy = false // its record goes with the commit that brings the next one
			continue
		}
		// A job that a client is told to be refused must not come back with the
		// next start of the broker.
		done.Lazy = done.Lazy && SubmitError(code) == nil
		b.answer(&p.jobs[i], code, s, fx)
	}
	fx.Writes = append(fx.Writes, done)
	return again
}

// codeOf returns what became of one of a group's jobs.
func codeOf(r command.Result, i int) command.Code {
	if r.Code == command.OK && r.Jobs != nil {
		return r.Jobs[i]
	}
	return r.Code
}

// FullPause is the least time that a job that was promised waits when the queue is
// full; at most it waits twice as long, so that many wait for the same moment.
const FullPause = 5 * time.Second

// whenFull returns when to ask again what a full queue refused now.
func (b *Book) whenFull() int64 { return (b.now.Boot/int64(FullPause) + 2) * int64(FullPause) }

// keepPromises journals refused jobs again that clients were told to be durable.
func (b *Book) keepPromises(jobs []Job, fx *turn.Effects) {
	b.group(jobs, b.whenFull(), fx)
}
