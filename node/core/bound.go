package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
	"github.com/cloudshare/cloudshare/node/trouble"
)

// A handler without a watchdog cannot be held to the lease (lease.go). It is held
// to a bound instead (architecture D4): before such an attempt is started, the
// federation hears when it will certainly be dead, and waits for that if this
// site is lost. With all moments on this site's CLOCK_BOOTTIME,
//
//	declared := now                     the entry is stamped later
//	fence    := declared + window + bound
//	start    only while the entry is in the state here, and at the latest at
//	         fence − bound              checked by the handler, too
//	dead     ≤ start + bound ≤ fence
//	state    waits until entry + (window + bound)·(1 + drift) + margin
//
// so it waits beyond the fence, as long as clock rates differ by less than drift.

const (
	// driftPercent is what the rates of two clocks may differ by, as in Timing.
	driftPercent = 1
	// leastWindow is how long a declaration has to come through, at least; it is
	// a lease otherwise.
	leastWindow = time.Second
)

// Guard is what makes sure that a handler's foreign attempts end.
type Guard struct {
	watchdog bool
	bound    func(executor.Task) (time.Duration, bool) // nil = none
}

// GuardOf returns how a handler's foreign attempts end.
func GuardOf(h executor.Handler) (g Guard) {
	_, g.watchdog = h.(executor.Extender)
	if b, ok := h.(executor.Bounded); ok {
		g.bound = b.Bound
	}
	return g
}

// pledge is what the federation was told about an attempt that is not started.
type pledge struct {
	command.BoundAttempt
	fence, latest int64 // CLOCK_BOOTTIME: dead by, and started by
	known         bool  // the state here has it
}

// pledgeBook holds the pledges of assignments that wait for their start.
type pledgeBook struct {
	byID map[executor.ID]*pledge
	open []*pledge // of this turn, not yet on their way
}

// clear forgets all pledges: what was not started, a registration does not name.
func (b *pledgeBook) clear() {
	clear(b.byID)
	b.open = nil
}

// dropUnassigned forgets what is not assigned any more.
func (b *pledgeBook) dropUnassigned(wanted map[executor.ID]bool) {
	for id := range b.byID {
		if !wanted[id] {
			delete(b.byID, id)
		}
	}
}

// fence sets until when a foreign attempt may live. False: it must not be started
// now; it was declined, or is looked at again once its bound is known.
func (c *Core) fence(rec *attemptRecord, task *executor.Task, as fsm.Assignment, s StateReader) bool {
	handler := c.machines[as.Machine].handler
	g := c.guards[handler]
	switch {
	case g.watchdog && mutate.On("no-fence"):
		return true
	case g.watchdog:
		task.Fence = c.lease.until
		return true
	case g.bound == nil:
		c.decline(as, trouble.DeclinedUnbound, fmt.Sprintf("%s runs this site's own tasks only: it has neither a watchdog nor a stop bound", handler))
		return false
	}
	bound, ok := g.bound(*task)
	if !ok || bound <= 0 {
		c.decline(as, trouble.DeclinedUnbound, handler+" stops the tasks of other sites at their timeout only: submit it with a timeout")
		return false
	}
	p := c.pledges.byID[rec.ID]
	switch {
	case p == nil, p.known && c.now.Boot > p.latest:
		c.pledge(rec.ID, as, bound, s)
		return false
	case !p.known || as.BoundMs == 0:
		return false
	}
	delete(c.pledges.byID, rec.ID)
	task.Fence, rec.Bounded = p.fence, true
	return true
}

// pledge has an attempt's bound declared.
func (c *Core) pledge(id executor.ID, as fsm.Assignment, bound time.Duration, s StateReader) {
	window := max(leastWindow, node.TimingOf(s.Params(), 0).Lease)
	ms := (window + bound).Milliseconds() + 1
	ms += ms*driftPercent/100 + 1
	if bound > command.MaxTimeoutMs*time.Millisecond || ms > command.MaxTimeoutMs {
		c.decline(as, trouble.DeclinedUnbound, fmt.Sprintf("it could run for %s, longer than a federation can wait for", bound))
		return
	}
	latest := c.now.Boot + int64(window)
	p := &pledge{BoundAttempt: command.BoundAttempt{AttemptRef: as.AttemptRef, BoundMs: ms}, latest: latest, fence: latest + int64(bound)}
	c.pledges.byID[id] = p
	c.pledges.open = append(c.pledges.open, p)
}

// declareBounds sends this turn's declarations. The assignments are looked at
// again when the state has them.
func (c *Core) declareBounds() {
	for batch := range slices.Chunk(c.pledges.open, maxReports) {
		cmd := &command.Bound{}
		for _, p := range batch {
			cmd.Attempts = append(cmd.Attempts, p.BoundAttempt)
		}
		c.out.add(cmd, func(r command.Result, _ StateReader, _ *Effects) { c.handleDeclared(batch, r.Code) })
	}
	c.pledges.open = nil
}

// handleDeclared notes that the state has pledges, or that they must be made again.
func (c *Core) handleDeclared(batch []*pledge, code command.Code) {
	for _, p := range batch {
		c.again = append(c.again, p.AttemptRef)
		p.known = code == command.OK
		if id := c.last.attemptID(p.AttemptRef); !p.known && c.pledges.byID[id] == p {
			delete(c.pledges.byID, id)
		}
	}
}
