package lend

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// closure keeps what the state was told last of why this site lends nothing.
type closure struct {
	told     command.Closure
	inflight bool
}

// Closure returns why the site lends nothing now.
func (b *Book) Closure() command.Closure {
	switch {
	case b.closing:
		return command.ClosedLeaving
	case b.full != nil:
		return command.ClosedDisk
	case b.drain.On:
		return command.ClosedDrain
	case b.unsure != "":
		return command.ClosedDiffers
	case b.machines.AllResting():
		return command.ClosedTrouble
	}
	return command.NotClosed
}

// ReportClosure has the state know why the site lends nothing, or that it lends again. One
// command is under way at a time.
func (b *Book) ReportClosure() {
	why := b.Closure()
	if b.closed.inflight || why == b.closed.told {
		return
	}
	b.closed.told, b.closed.inflight = why, true
	b.out.Add(&command.Close{Why: why}, func(command.Result, turn.StateReader, *turn.Effects) {
		b.closed.inflight = false
	})
}
