package lend

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// closure keeps what the state was told last of why this site lends nothing.
type closure struct {
	told     fsm.Closure
	inflight bool
}

// Closure returns why the site lends nothing now.
func (b *Book) Closure() fsm.Closure {
	switch {
	case b.closing:
		return fsm.ClosedLeaving
	case b.full != nil:
		return fsm.ClosedDisk
	case b.drain.On:
		return fsm.ClosedDrain
	case b.machines.AllResting():
		return fsm.ClosedTrouble
	}
	return fsm.NotClosed
}

// ReportClosure has the state know why the site lends nothing, or that it lends again. One
// command is under way at a time.
func (b *Book) ReportClosure() {
	why := b.Closure()
	if b.closed.inflight || why == b.closed.told {
		return
	}
	b.closed.told, b.closed.inflight = why, true
	b.out.Add(&fsm.Close{Why: why}, func(fsm.Result, turn.StateReader, *turn.Effects) { b.closed.inflight = false })
}
