package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// Limits of one Propose call and of one entry. A call larger than the soft
// limits of an entry stands in an entry of its own.
const (
	MaxCallCommands  = 4096
	MaxCallBytes     = 8 << 20
	MaxEntryCommands = 4096
)

// Propose implements coord.Log. A SiteLost stands alone, is neither forwarded
// nor retried, and is ordered in its own term only.
func (c *Calls) Propose(ctx context.Context, cmds ...command.Command) ([]command.Result, error) {
	p, err := c.encode(cmds)
	if err != nil {
		return nil, fmt.Errorf("propose: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("propose: %w: %w", coord.ErrRefused, context.Cause(ctx))
	}
	if err := c.admit(ctx, p); err != nil {
		return nil, err
	}
	if err := c.pending.add(p); err != nil {
		return nil, fmt.Errorf("propose: %w", err)
	}
	c.dispatch()
	select {
	case <-p.done:
		return p.results, p.err
	case <-ctx.Done():
	}
	a, ok := c.pending.abandon(p)
	if !ok {
		return p.results, p.err
	}
	return nil, fmt.Errorf("propose %s: %w: %w", name(p.ids), a.class(), context.Cause(ctx))
}

// admit waits until the calls under way leave room for one more.
func (c *Calls) admit(ctx context.Context, p *proposal) error {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	switch room := c.pending.admit(waits, p); {
	case room && ctx.Err() == nil:
		return nil
	case room: // others that gave up with it made the room
		p.memory.release(p.memory.held)
	case c.ctx.Err() != nil:
		return fmt.Errorf("propose: %w", c.cfg.Backend.Closed())
	}
	return fmt.Errorf("propose %s: %w: %d MiB of earlier calls wait for the leader: %w", name(p.ids), coord.ErrRefused, maxPending>>20, context.Cause(ctx))
}

// class returns the outcome of a call that ends without a result.
func (a attempts) class() error {
	switch {
	case a.mayBeExecuted():
		return coord.ErrUnknown
	case a.refused:
		return coord.ErrRefused
	}
	return coord.ErrNoLead
}

func (c *Calls) encode(cmds []command.Command) (*proposal, error) {
	p := &proposal{
		done: make(chan struct{}), judgement: true,
		ids: make([]command.ID, 0, len(cmds)), cmds: make([][]byte, 0, len(cmds)),
	}
	if len(cmds) == 0 {
		return nil, fmt.Errorf("%w: no commands", coord.ErrRefused)
	}
	if len(cmds) > MaxCallCommands {
		return nil, fmt.Errorf("%w: %w: %d commands, the limit of one call is %d",
			coord.ErrRefused, coord.ErrTooLarge, len(cmds), MaxCallCommands)
	}
	for i := range cmds {
		if err := c.encodeOne(p, &cmds[i], len(cmds)); err != nil {
			return nil, fmt.Errorf("command %d: %w: %w", i, coord.ErrRefused, err)
		}
	}
	return p, nil
}

func (c *Calls) encodeOne(p *proposal, cmd *command.Command, of int) error {
	if cmd.ID.Site != c.cfg.Site {
		return fmt.Errorf("it is of site %.80q, this is %s", cmd.ID.Site, c.cfg.Site)
	}
	if err := cmd.Validate(); err != nil {
		return err
	}
	if _, ok := cmd.Body.(*command.Recover); ok {
		return errors.New("a new epoch is not ordered: stop the broker and run cloudshare recover")
	}
	if lost, ok := cmd.Body.(*command.SiteLost); ok {
		if of != 1 || lost.Term == 0 {
			return errors.New("a site loss stands alone and names its term")
		}
		p.term = lost.Term
	}
	p.urgent = p.urgent || !isReport(cmd.Body.Kind())
	p.judgement = p.judgement && cmd.Body.Kind().OfLeader()
	b := command.Append(nil, *cmd)
	p.ids = append(p.ids, cmd.ID)
	p.cmds = append(p.cmds, b)
	if p.bytes += len(b); p.bytes > MaxCallBytes {
		return fmt.Errorf("%w: more than %d bytes in one call: split it", coord.ErrTooLarge, MaxCallBytes)
	}
	return nil
}

// dispatch sends what waits to the leader known now. Without one it stays queued
// until the leader changes.
func (c *Calls) dispatch() {
	to, self := c.cfg.Backend.Lead()
	if to.None() && !self {
		c.pending.settleUnroutable()
		return
	}
	calls := c.pending.takeQueue()
	if self {
		c.seq.submit(c.cfg.Site, c.items(calls)...)
		return
	}
	far := calls[:0:0]
	for _, p := range calls {
		if p.term != 0 || p.judgement { // the next leader judges for itself
			c.outcome(p, Refused, 0)
		} else {
			far = append(far, p)
		}
	}
	if len(far) > 0 {
		c.forward.submit(to, far)
	}
}

func (c *Calls) items(calls []*proposal) []item {
	items := make([]item, 0, len(calls))
	for _, p := range calls {
		items = append(items, item{
			calls: []call{{c.pending.origin, p.seq, len(p.cmds)}}, cmds: p.cmds, commands: len(p.cmds), bytes: p.bytes,
			term:    p.term,
			reports: !p.urgent, ahead: p.judgement,
			done: func(o Outcome, index uint64) { c.outcome(p, o, index) },
		})
	}
	return items
}

// outcome settles an attempt: the result comes by local apply, or the call is
// sent again under the same ids.
func (c *Calls) outcome(p *proposal, o Outcome, index uint64) {
	if !c.pending.recordOutcome(p, o, index) {
		return
	}
	switch {
	case o == Ordered:
		if c.cfg.Position.Now() >= index {
			c.settleFromSnapshot(p)
		}
	case o == rejected:
		c.complaints.add(rejectedCall, p)
		c.resendLater(p)
	case p.term != 0, p.judgement && o == Refused:
		c.pending.fail(p, func(a attempts) error { return fmt.Errorf("propose %s: %w", name(p.ids), a.class()) })
	default:
		c.resendLater(p)
	}
}

// settleOrdered settles the calls that a leader said to be ordered at an index up to most, or sends them again. A
// leader that names a wrong index, or another entry's, has its say until then.
func (c *Calls) settleOrdered(most uint64) {
	for _, p := range c.pending.ordered(most) {
		c.settleFromSnapshot(p)
	}
}

// settleFromSnapshot looks for a call that was ordered below what is applied here but
// did not pass by: a snapshot brought it.
func (c *Calls) settleFromSnapshot(p *proposal) {
	found := false
	c.cfg.Backend.With(func(m coord.Machine) { found = c.pending.settleExecuted(p, m.Result) })
	if !found {
		c.resendLater(p)
	}
}

// resendLater sends a call once more after a pause that grows.
func (c *Calls) resendLater(p *proposal) {
	time.AfterFunc(c.t.Pause(c.pending.markResting(p)), func() {
		if c.ctx.Err() == nil {
			c.pending.wake(p)
			c.dispatch()
		}
	})
}

// Pause returns how long to wait before another try; it grows.
func (t Timing) Pause(try int) time.Duration {
	return min(t.Backoff<<min(try, 10), t.MaxBackoff)
}

// pause waits before another try: until the leader changes, or a while.
func (c *Calls) pause(ctx context.Context, try int, changed <-chan struct{}) error {
	t := time.NewTimer(c.t.Pause(try))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-changed:
		return nil
	case <-c.ctx.Done():
		return c.cfg.Backend.Closed()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", coord.ErrNoLead, context.Cause(ctx))
	}
}

// name returns how messages speak of a call.
func name(ids []command.ID) string {
	return fmt.Sprintf("%s/%d/%d+%d", ids[0].Site, ids[0].Incarnation, ids[0].Seq, len(ids)-1)
}
