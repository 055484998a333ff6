package homejobs

import (
	"cmp"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// Cancel ends what waits and stops what runs.
func (b *Book) Cancel(num uint64, at string, fx *turn.Effects) error {
	job := b.jobs[num]
	if job.Ended() {
		return fmt.Errorf("cancel job %s.%d: %w", b.site, num, node.ErrEnded)
	}
	for i := range job.Tasks {
		b.cancelTask(num, uint32(i), at, fx)
	}
	b.finishCancel(num, fx)
	return nil
}

// CancelTasks ends some tasks of a home job; ErrEnded if all of them have.
func (b *Book) CancelTasks(num uint64, positions []uint32, at string, fx *turn.Effects) error {
	if b.jobs[num].Ended() {
		return node.ErrEnded
	}
	open := 0
	for _, position := range positions {
		if b.cancelTask(num, position, at, fx) {
			open++
		}
	}
	if open == 0 {
		return node.ErrEnded
	}
	b.finishCancel(num, fx)
	return nil
}

// cancelTask ends a task that waits, or has one that runs be stopped; false: it
// has ended. at is the site whose broker was asked; empty: this one's.
func (b *Book) cancelTask(num uint64, i uint32, at string, fx *turn.Effects) bool {
	t := &b.jobs[num].Tasks[i]
	switch t.State {
	case fsm.Queued:
		t.State, t.Reason, t.EndedMs = fsm.TaskCancelled, fsm.CancelledAt(cmp.Or(at, b.site)), b.now.Wall.UnixMilli()
	case fsm.Assigned, fsm.Running:
		t.State, t.Reason = fsm.Stopping, fsm.CancelledAt(cmp.Or(at, b.site))
		b.calm = false
	default:
		return t.State == fsm.Stopping
	}
	b.write(num, i, fx)
	return true
}

// finishCancel brings handlers and lists in line after tasks were cancelled.
func (b *Book) finishCancel(num uint64, fx *turn.Effects) {
	b.unstick() // what was ended may be among them
	b.StopCancelled(fx)
	b.retire(num, fx)
}

// StopCancelled tells the handlers of home attempts that must end.
func (b *Book) StopCancelled(fx *turn.Effects) {
	if b.calm {
		return
	}
	b.calm = true
	for _, a := range b.attempts.All() {
		if !a.Home {
			continue
		}
		if _, t := b.taskOf(a.ID); t != nil && t.State == fsm.Stopping {
			b.calm = false
			b.attempts.Stop(a, t.Reason, fx)
		}
	}
}
