package core

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// maxCancels bounds the jobs whose cancellation waits for the quorum, and
	// maxCancelReplies who waits for the outcome of one.
	maxCancels       = 16 << 10
	maxCancelReplies = 16
	// MaxSettings bounds the changes of parameters that wait for the quorum.
	MaxSettings = 64
)

// cancelBook holds who waits for the cancellation of which job of this site. One
// command is for all of them.
type cancelBook struct {
	waiting map[uint64][]func(error)
	// places are where each of these was asked first.
	places map[uint64]string
	// tasks are how many single tasks' cancellations are being ordered.
	tasks int
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

// cancel ends one of this site's jobs, wherever it is on its way.
func (c *Core) cancel(ev CancelEvent, fx *Effects) {
	if err := c.cancels.room(ev.Num); err != nil {
		err = fmt.Errorf("cancel job %s: %w", command.JobID{Site: c.site, Num: ev.Num}, err)
		fx.Replies = append(fx.Replies, func() { ev.Reply(err) })
		return
	}
	replies := c.cancels.waiting[ev.Num]
	c.cancels.waiting[ev.Num] = append(replies, ev.Reply)
	if len(replies) == 0 {
		c.cancels.places[ev.Num] = ev.At
		c.cancelWaiting(ev.Num, fx)
	}
}

// cancelWaiting cancels a job for those who wait for it.
func (c *Core) cancelWaiting(num uint64, fx *Effects) {
	if c.home.jobs[num] != nil {
		c.answerCancels(num, c.cancelHome(num, c.cancels.places[num], fx), fx)
		return
	}
	if p := c.pubs.byJob[num]; p != nil {
		p.cancels = append(p.cancels, num) // right after it is published
		return
	}
	id := command.JobID{Site: c.site, Num: num}
	c.out.add(&command.Cancel{Job: id, Task: -1, At: c.placeOf(c.cancels.places[num])}, func(r command.Result, _ StateReader, fx *Effects) {
		c.answerCancels(num, cancelError(id, r.Code), fx)
	})
}

// answerCancels answers all who wait for a job's cancellation.
func (c *Core) answerCancels(num uint64, err error, fx *Effects) {
	for _, reply := range c.cancels.waiting[num] {
		fx.Replies = append(fx.Replies, func() { reply(err) })
	}
	delete(c.cancels.waiting, num)
	delete(c.cancels.places, num)
}

// placeOf returns the site at which something was asked, as a command names it: of the
// owner's own nothing is said.
func (c *Core) placeOf(at string) string {
	if at == c.site {
		return ""
	}
	return at
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
