package raftlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
)

// Propose implements coord.Log. A SiteLost stands alone, is neither forwarded
// nor retried, and is ordered in its own term only.
func (l *Log) Propose(ctx context.Context, cmds ...fsm.Command) ([]fsm.Result, error) {
	c, err := l.encode(cmds)
	if err != nil {
		return nil, fmt.Errorf("propose: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("propose: %w: %w", coord.ErrRefused, context.Cause(ctx))
	}
	if err := l.pending.add(c); err != nil {
		return nil, fmt.Errorf("propose: %w", err)
	}
	l.dispatch()
	select {
	case <-c.done:
		return c.results, c.err
	case <-ctx.Done():
	}
	a, ok := l.pending.abandon(c)
	if !ok {
		return c.results, c.err
	}
	return nil, fmt.Errorf("propose %s: %w: %w", name(c.ids), a.class(), context.Cause(ctx))
}

// class is the outcome of a call that ends without a result.
func (a attempts) class() error {
	switch {
	case a.maybe():
		return coord.ErrUnknown
	case a.refused:
		return coord.ErrRefused
	}
	return coord.ErrNoLead
}

func (l *Log) encode(cmds []fsm.Command) (*proposal, error) {
	c := &proposal{done: make(chan struct{}), ids: make([]fsm.CommandID, 0, len(cmds)), cmds: make([][]byte, 0, len(cmds))}
	if len(cmds) == 0 {
		return nil, fmt.Errorf("%w: no commands", coord.ErrRefused)
	}
	if len(cmds) > MaxCallCommands {
		return nil, fmt.Errorf("%w: %w: %d commands, the limit of one call is %d",
			coord.ErrRefused, coord.ErrTooLarge, len(cmds), MaxCallCommands)
	}
	for i := range cmds {
		if err := l.encodeOne(c, &cmds[i], len(cmds)); err != nil {
			return nil, fmt.Errorf("command %d: %w: %w", i, coord.ErrRefused, err)
		}
	}
	return c, nil
}

func (l *Log) encodeOne(c *proposal, cmd *fsm.Command, of int) error {
	if cmd.ID.Site != l.cfg.Site {
		return fmt.Errorf("it is of site %.80q, this is %s", cmd.ID.Site, l.cfg.Site)
	}
	if err := cmd.Validate(); err != nil {
		return err
	}
	if _, ok := cmd.Body.(*fsm.Recover); ok {
		return errors.New("a new epoch is not ordered: stop the broker and run cloudshare recover")
	}
	if lost, ok := cmd.Body.(*fsm.SiteLost); ok {
		if of != 1 || lost.Term == 0 {
			return errors.New("a site loss stands alone and names its term")
		}
		c.term = lost.Term
	}
	b := fsm.AppendCommand(nil, *cmd)
	c.ids = append(c.ids, cmd.ID)
	c.cmds = append(c.cmds, b)
	if c.bytes += len(b); c.bytes > MaxCallBytes {
		return fmt.Errorf("%w: more than %d bytes in one call: split it", coord.ErrTooLarge, MaxCallBytes)
	}
	return nil
}

// dispatch sends what waits to the lead known now. Without one it stays queued
// until the lead changes.
func (l *Log) dispatch() {
	addr, self := l.lead()
	if addr == "" && !self {
		l.pending.drop()
		return
	}
	calls := l.pending.take()
	if self {
		l.seq.submit(l.items(calls)...)
		return
	}
	far := calls[:0:0]
	for _, c := range calls {
		if c.term != 0 {
			l.outcome(c, refused, 0)
		} else {
			far = append(far, c)
		}
	}
	if len(far) > 0 {
		l.forward.submit(addr, far)
	}
}

func (l *Log) items(calls []*proposal) []item {
	items := make([]item, 0, len(calls))
	for _, c := range calls {
		items = append(items, item{
			call: call{l.pending.origin, c.seq, len(c.cmds)}, cmds: c.cmds, bytes: c.bytes, term: c.term,
			done: func(o outcome, index uint64) { l.outcome(c, o, index) },
		})
	}
	return items
}

// outcome settles an attempt: the result comes by local apply, or the call is
// sent again under the same ids.
func (l *Log) outcome(c *proposal, o outcome, index uint64) {
	if !l.pending.note(c, o, index) {
		return
	}
	switch {
	case o == ordered:
		if l.machine.position.now() >= index {
			l.swallowed(c)
		}
	case o == rejected:
		l.pending.fail(c, func(attempts) error {
			return fmt.Errorf("propose %s: %w: the lead cannot decode it or takes it for another site's: "+
				"compare the versions and site names of the brokers", name(c.ids), coord.ErrRefused)
		})
	case c.term != 0:
		l.pending.fail(c, func(a attempts) error { return fmt.Errorf("propose %s: %w", name(c.ids), a.class()) })
	default:
		l.again(c)
	}
}

// swallowed looks for a call that was ordered below what is applied here but
// did not pass by: a snapshot brought it.
func (l *Log) swallowed(c *proposal) {
	found := false
	l.machine.call(func(m coord.Machine) { found = l.pending.find(c, m.Result) })
	if !found {
		l.again(c)
	}
}

// again sends a call once more after a pause that grows.
func (l *Log) again(c *proposal) {
	time.AfterFunc(l.backoff(l.pending.rest(c)), func() {
		if l.ctx.Err() == nil {
			l.pending.wake(c)
			l.dispatch()
		}
	})
}

func (l *Log) backoff(try int) time.Duration {
	return min(l.t.backoff<<min(try, 10), l.t.maxBackoff)
}

// pause waits before another try: until the lead changes, or a while.
func (l *Log) pause(ctx context.Context, try int, changed <-chan struct{}) error {
	t := time.NewTimer(l.backoff(try))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-changed:
		return nil
	case <-l.ctx.Done():
		return l.closedErr()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", coord.ErrNoLead, context.Cause(ctx))
	}
}

// name is how messages speak of a call.
func name(ids []fsm.CommandID) string {
	return fmt.Sprintf("%s/%d/%d+%d", ids[0].Site, ids[0].Incarnation, ids[0].Seq, len(ids)-1)
}
