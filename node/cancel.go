package node

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
)

// cancel ends one of this site's jobs, wherever it is on its way.
func (c *core) cancel(ev cancelEvent, fx *effects) {
	answer := func(err error) { fx.replies = append(fx.replies, func() { ev.reply(err) }) }
	if c.home.jobs[ev.num] != nil {
		answer(c.cancelHome(ev.num, fx))
		return
	}
	if p := c.pubs.byJob[ev.num]; p != nil {
		p.cancels = append(p.cancels, ev) // right after it is published
		return
	}
	id := fsm.JobID{Site: c.site, Num: ev.num}
	c.out.add(&fsm.Cancel{Job: id, Task: -1}, func(r fsm.Result, _ stateReader, fx *effects) {
		err := cancelError(id, r.Code)
		fx.replies = append(fx.replies, func() { ev.reply(err) })
	})
}

func cancelError(id fsm.JobID, code fsm.Code) error {
	switch code {
	case fsm.OK:
		return nil
	case fsm.UnknownJob, fsm.JobRetired:
		return fmt.Errorf("cancel job %s: %w", id, ErrNotFound)
	case fsm.AlreadyEnded:
		return fmt.Errorf("cancel job %s: %w", id, ErrEnded)
	default:
		return fmt.Errorf("cancel job %s: %w: %s", id, ErrNotReady, code)
	}
}
