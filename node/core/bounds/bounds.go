// Package bounds holds foreign attempts of handlers without a watchdog to a bound.
//
// A handler without a watchdog cannot be held to the lease (lease.go). It is held
// to a bound instead (architecture D4): before such an attempt is started, the
// federation hears when it will certainly be dead, and waits for that if this
// site is lost. With all moments on this site's CLOCK_BOOTTIME,
//
//	declared := now                     the entry is stamped after that
//	fence    := declared + window + bound
//	start    only while the entry is in the state here, and at the latest at
//	         fence − bound              checked by the handler, too
//	dead     ≤ start + bound ≤ fence
//	state    waits until entry + (window + bound)·(1 + drift) + margin
//
// so it waits beyond the fence, as long as clock rates differ by less than drift.
package bounds

import (
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

const (
	// driftPercent is what the rates of two clocks may differ by, as in Timing.
	driftPercent = 1
	// leastWindow is how long a declaration has to come through, at least; it is
	// a lease otherwise.
	leastWindow = time.Second
)

// Guard is what makes sure that a handler's foreign attempts end.
type Guard struct {
	Watchdog bool
	Bound    func(executor.Task) (time.Duration, bool) // nil = none
}

// GuardOf returns how a handler's foreign attempts end.
func GuardOf(h executor.Handler) (g Guard) {
	_, g.Watchdog = h.(executor.Extender)
	if b, ok := h.(executor.Bounded); ok {
		g.Bound = b.Bound
	}
	return g
}

// pledge is what the federation was told about an attempt that is not started.
type pledge struct {
	command.BoundAttempt
	id            executor.ID
	fence, latest int64 // CLOCK_BOOTTIME: dead by, and started by
	known         bool  // the state here has it
}

// Book holds the pledges of assignments that wait for their start.
type Book struct {
	out *turn.Outbox
	now *turn.Clock
	// guards say how each handler's foreign attempts end, by its name.
	guards map[string]Guard

	byID map[executor.ID]*pledge
	open []*pledge // of this turn, not yet on their way
}

// NewBook returns a book without handlers and pledges.
func NewBook(out *turn.Outbox, now *turn.Clock) Book {
	return Book{out: out, now: now, guards: map[string]Guard{}, byID: map[executor.ID]*pledge{}}
}

// SetGuard says how a handler's foreign attempts end.
func (b *Book) SetGuard(handler string, g Guard) { b.guards[handler] = g }

// Len returns how many assignments have a pledge.
func (b *Book) Len() int { return len(b.byID) }

// Opened returns how many pledges of this turn are not on their way yet.
func (b *Book) Opened() int { return len(b.open) }

// Forget drops the pledge of an assignment that is not started here any more.
func (b *Book) Forget(id executor.ID) { delete(b.byID, id) }

// Clear forgets all pledges: what was not started, a registration does not name.
func (b *Book) Clear() {
	clear(b.byID)
	b.open = nil
}

// DropUnassigned forgets what is not assigned any more.
func (b *Book) DropUnassigned(wanted map[executor.ID]bool) {
	for id := range b.byID {
		if !wanted[id] {
			delete(b.byID, id)
		}
	}
}

// Fence sets the moment until which a foreign attempt of a handler may live; until is the
// lease's end. If it returns false the attempt must not be started now: the caller declines
// it if why is not empty, else it examines the attempt again once the state has its bound.
func (b *Book) Fence(handler string, until int64, rec *attempts.Record, task *executor.Task, as *fsm.Assignment,
	s turn.StateReader,
) (start bool, why string) {
	g := b.guards[handler]
	switch {
	case g.Watchdog && mutate.On("no-fence"):
		return true, ""
	case g.Watchdog:
		task.Fence = until
		return true, ""
	}
	if why = b.Unbound(handler, task); why != "" {
		return false, why
	}
	bound, _ := g.Bound(*task)
	p := b.byID[rec.ID]
	switch {
	case p == nil, p.known && b.now.Boot > p.latest:
		return false, b.pledge(rec.ID, as, bound, s)
	case !p.known || as.BoundMs == 0:
		return false, ""
	}
	delete(b.byID, rec.ID)
	task.Fence, rec.Bounded = p.fence, true
	return true, ""
}

// Unbound says why a foreign task could never begin at a handler: nothing would end it for certain; "": it could.
func (b *Book) Unbound(handler string, task *executor.Task) (why string) {
	g := b.guards[handler]
	switch {
	case g.Watchdog:
		return ""
	case g.Bound == nil:
		return handler + " runs this site's own tasks only: it has neither a watchdog nor a stop bound"
	}
	if bound, ok := g.Bound(*task); !ok || bound <= 0 {
		return handler + " stops the tasks of other sites at their timeout only: submit it with a timeout"
	}
	return ""
}

// pledge has an attempt's bound declared, or says why it cannot be.
func (b *Book) pledge(id executor.ID, as *fsm.Assignment, bound time.Duration, s turn.StateReader) (why string) {
	window := max(leastWindow, node.TimingOf(s.Params(), 0).Lease)
	ms := (window + bound).Milliseconds() + 1
	ms += ms*driftPercent/100 + 1
	if bound > command.MaxTimeoutMs*time.Millisecond || ms > command.MaxTimeoutMs {
		return fmt.Sprintf("it could run for %s, longer than a federation can wait for", bound)
	}
	latest := b.now.Boot + int64(window)
	p := &pledge{
		id: id, BoundAttempt: command.BoundAttempt{AttemptRef: as.AttemptRef, BoundMs: ms}, latest: latest,
		fence: latest + int64(bound),
	}
	b.byID[id] = p
	b.open = append(b.open, p)
	return ""
}

// Declare sends this turn's declarations, and calls again for each assignment once its
// declaration has a result.
func (b *Book) Declare(again func(command.AttemptRef)) {
	for batch := range slices.Chunk(b.open, turn.MaxReports) {
		cmd := &command.Bound{}
		for _, p := range batch {
			cmd.Attempts = append(cmd.Attempts, p.BoundAttempt)
		}
		b.out.Add(cmd, func(r command.Result, _ turn.StateReader, _ *turn.Effects) {
			b.handleDeclared(batch, r.Code, again)
		})
	}
	b.open = nil
}

// handleDeclared notes that the state has pledges, or that they must be made again.
func (b *Book) handleDeclared(batch []*pledge, code command.Code, again func(command.AttemptRef)) {
	for _, p := range batch {
		again(p.AttemptRef)
		p.known = code == command.OK
		if !p.known && b.byID[p.id] == p {
			delete(b.byID, p.id)
		}
	}
}
