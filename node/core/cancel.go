package core

import (
	"cmp"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/after"
	"github.com/cloudshare/cloudshare/node/core/homejobs"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

const (
	// maxCancels bounds the jobs whose cancellation waits for the quorum, and
	// maxCancelReplies who waits for the outcome of one.
	maxCancels       = 16 << 10
	maxCancelReplies = 16
)

// cancelBook holds who waits for the cancellation of which job of this site. One
// command is for all of them.
type cancelBook struct {
	site  string
	out   *turn.Outbox
	home  *homejobs.Book
	pubs  *publish.Book
	after *after.Book
	// ended is told of a held job that was cancelled.
	ended   func(*after.Job)
	waiting map[uint64][]func(error)
	// places are where each of these was asked first.
	places map[uint64]string
	// tasks are how many single tasks' cancellations are being ordered.
	tasks int
}

func newCancelBook(site string, out *turn.Outbox, home *homejobs.Book, pubs *publish.Book, held *after.Book,
	ended func(*after.Job),
) cancelBook {
	return cancelBook{
		site: site, out: out, home: home, pubs: pubs, after: held, ended: ended,
		waiting: map[uint64][]func(error){}, places: map[uint64]string{},
	}
}

// room returns why no more can wait for a job's cancellation, or nil.
func (b *cancelBook) room(num uint64) error {
	switch n := len(b.waiting[num]); {
	case n >= maxCancelReplies:
		return fmt.Errorf("%w: it waits for a quorum, and is carried out once there is one", node.ErrFull)
	case n == 0 && len(b.waiting) >= maxCancels:
		return fmt.Errorf("%w: %d jobs of this site wait to be cancelled already: try again when there is a quorum", node.ErrFull, len(b.waiting))
	}
	return nil
}

// wait adds one who waits for a job's cancellation, asked for at a site, and reports
// whether it is the first.
func (b *cancelBook) wait(num uint64, at string, reply func(error)) (first bool) {
	first = len(b.waiting[num]) == 0
	b.waiting[num] = append(b.waiting[num], reply)
	if first {
		b.places[num] = at
	}
	return first
}

// order has a job in the state cancelled.
func (b *cancelBook) order(num uint64) {
	b.out.Add(b.whole(num), func(r command.Result, _ StateReader, fx *Effects) { b.executed(num, r.Code, fx) })
}

// orderBehind has a job cancelled by the entry that publishes it: none of its tasks begins. If it was refused there,
// it is still on its way.
func (b *cancelBook) orderBehind(num uint64) {
	b.out.AddBehind(b.whole(num), func(r command.Result, _ StateReader, fx *Effects) {
		if r.Code != command.UnknownJob || !b.pubs.Cancel(num) {
			b.executed(num, r.Code, fx)
		}
	})
}

// whole returns the command that cancels a job.
func (b *cancelBook) whole(num uint64) *command.Cancel {
	return &command.Cancel{Job: command.JobID{Site: b.site, Num: num}, Task: -1, At: b.placeOf(b.places[num])}
}

// executed tells all who wait what the state said of a job's cancellation.
func (b *cancelBook) executed(num uint64, code command.Code, fx *Effects) {
	b.answer(num, cancelError(command.JobID{Site: b.site, Num: num}, code), fx)
}

// answer tells all who wait what became of a job's cancellation.
func (b *cancelBook) answer(num uint64, err error, fx *Effects) {
	for _, reply := range b.waiting[num] {
		fx.Replies = append(fx.Replies, func() { reply(err) })
	}
	delete(b.waiting, num)
	delete(b.places, num)
}

// placeOf returns the site at which something was asked, as a command names it: of the
// owner's own nothing is said.
func (b *cancelBook) placeOf(at string) string {
	if at == b.site {
		return ""
	}
	return at
}

// cancel ends one of this site's jobs, wherever it is on its way.
func (b *cancelBook) cancel(ev CancelEvent, fx *Effects) {
	if err := b.room(ev.Num); err != nil {
		err = fmt.Errorf("cancel job %s: %w", command.JobID{Site: b.site, Num: ev.Num}, err)
		fx.Replies = append(fx.Replies, func() { ev.Reply(err) })
		return
	}
	if b.wait(ev.Num, ev.At, ev.Reply) {
		b.cancelWaiting(ev.Num, fx)
	}
}

// cancelWaiting cancels a job for those who wait for it.
func (b *cancelBook) cancelWaiting(num uint64, fx *Effects) {
	switch {
	case b.home.Find(num) != nil:
		b.answer(num, b.home.Cancel(num, b.places[num], fx), fx)
	case b.after.Find(num) != nil:
		b.answer(num, b.cancelHeld(num, fx), fx)
	case b.pubs.Cancel(num): // with its publication, or right after it
	default:
		b.order(num)
	}
}

// cancelHeld ends a job that waits for others.
func (b *cancelBook) cancelHeld(num uint64, fx *Effects) error {
	j := b.after.Cancel(num, fsm.CancelledAt(cmp.Or(b.places[num], b.site)), fx)
	if j == nil {
		return cancelError(command.JobID{Site: b.site, Num: num}, command.AlreadyEnded)
	}
	b.ended(j)
	return nil
}

func cancelError(id command.JobID, code command.Code) error {
	switch code {
	case command.OK:
		return nil
	case command.UnknownJob, command.JobRetired:
		return fmt.Errorf("cancel job %s: %w", id, node.ErrNotFound)
	case command.AlreadyEnded:
		return fmt.Errorf("cancel job %s: %w", id, node.ErrEnded)
	default:
		return fmt.Errorf("cancel job %s: %w: %s", id, node.ErrNotReady, code)
	}
}
