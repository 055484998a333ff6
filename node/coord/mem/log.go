package mem

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// Log is one member.
type Log struct {
	g        *Group
	site     string
	m        coord.Machine
	changed  chan struct{}
	failed   chan struct{}
	progress coord.Broadcast // entries were applied here

	// Guarded by g.mu.
	applied  uint64
	cut, lag bool
	lose     bool
	closed   bool
	err      error
	calls    []*call // not settled
	grantor  coord.Grantor
	resting  bool   // it laid down its vote
	unfit    string // why it should not lead, "" = it may
}

var _ coord.Log = (*Log)(nil)

// call is one Propose. Its fields are guarded by the group's mu.
type call struct {
	from    *Log
	cmds    []encoded
	bytes   int
	term    uint64        // if not 0: for the leader of this term only
	ordered uint64        // entry, 0 = not yet
	gone    bool          // its caller gave up before it was ordered
	settled chan struct{} // nil = nobody waits, see Together
	ended   bool
	results []command.Result
	err     error
}

// encoded is a command as it stands in an entry.
type encoded struct {
	id   command.ID
	data []byte
}

type callState uint8

const (
	orderable callState = iota
	waiting             // no leader can be reached
	ended
)

// REQUIRES: g.mu held.
func (c *call) state() callState {
	l := c.from
	switch {
	case c.ended || c.gone || l.closed || c.ordered > 0:
		return ended
	case !l.reachable() || l.g.lead == "":
		return waiting
	}
	return orderable
}

// REQUIRES: g.mu held.
func (c *call) finish(res []command.Result, err error) {
	if c.ended {
		return
	}
	c.ended, c.results, c.err = true, res, err
	c.from.calls = slices.DeleteFunc(c.from.calls, func(o *call) bool { return o == c })
	if c.settled != nil {
		close(c.settled)
	}
}

// reachable: it runs and is not cut off.
//
// REQUIRES: g.mu held.
func (l *Log) reachable() bool { return !l.closed && !l.cut && l.err == nil }

// Propose implements coord.Log.
func (l *Log) Propose(ctx context.Context, cmds ...command.Command) ([]command.Result, error) {
	c := &call{}
	if _, err := l.encode(c, cmds, make([]byte, 0, 64*len(cmds))); err != nil {
		return nil, fmt.Errorf("propose: %w: %w", coord.ErrRefused, err)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("propose: %w: %w", coord.ErrRefused, context.Cause(ctx))
	}
	c.settled = make(chan struct{})
	for {
		changed := l.g.changed.Wait()
		if err := l.send(c); err != nil {
			return nil, fmt.Errorf("propose: %w", err)
		}
		select {
		case <-c.settled:
			return c.results, c.err
		default:
		}
		select {
		case <-c.settled:
			return c.results, c.err
		case <-changed:
		case <-ctx.Done():
			return l.abandon(ctx, c)
		}
	}
}

// send has the call ordered if a leader can be reached and that has not happened.
func (l *Log) send(c *call) error {
	l.g.qmu.Lock()
	l.g.queue = append(l.g.queue, c)
	l.g.qmu.Unlock()
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	if !c.ended && l.closed {
		return l.closedErr()
	}
	if c.term != 0 && (l.g.lead != l.site || l.g.term != c.term || !l.reachable()) {
		c.gone = true
		return fmt.Errorf("%w: this member does not lead term %d", coord.ErrRefused, c.term)
	}
	if c.ordered == 0 && !c.ended && !slices.Contains(l.calls, c) {
		l.calls = append(l.calls, c)
	}
	l.g.flush()
	return nil
}

func (l *Log) abandon(ctx context.Context, c *call) ([]command.Result, error) {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	if c.ended {
		return c.results, c.err
	}
	class := coord.ErrNoLead
	if c.ordered > 0 {
		class = coord.ErrUnknown
	}
	c.gone = true
	err := fmt.Errorf("propose: %w: %w", class, context.Cause(ctx))
	c.finish(nil, err)
	return nil, err
}

// encode makes a call of commands; their bytes are appended to buf.
func (l *Log) encode(c *call, cmds []command.Command, buf []byte) ([]byte, error) {
	if len(cmds) == 0 {
		return nil, errors.New("no commands")
	}
	if len(cmds) > maxCallCommands {
		return nil, fmt.Errorf("%w: %d commands, the limit of one call is %d", coord.ErrTooLarge, len(cmds), maxCallCommands)
	}
	c.from, c.cmds = l, slices.Grow(c.cmds[:0], len(cmds))
	for i := range cmds {
		cmd := &cmds[i]
		if cmd.ID.Site != l.site {
			return nil, fmt.Errorf("command %d is of site %.80q, this is %s", i, cmd.ID.Site, l.site)
		}
		if err := cmd.Validate(); err != nil {
			return nil, fmt.Errorf("command %d: %w", i, err)
		}
		if lost, ok := cmd.Body.(*command.SiteLost); ok {
			if len(cmds) != 1 || lost.Term == 0 {
				return nil, fmt.Errorf("command %d: a site loss stands alone and names its term", i)
			}
			c.term = lost.Term
		}
		start := len(buf)
		buf = command.Append(buf, *cmd)
		b := buf[start:len(buf):len(buf)]
		c.cmds = append(c.cmds, encoded{cmd.ID, b})
		if c.bytes += len(b); c.bytes > command.MaxCommand {
			return nil, fmt.Errorf("%w: more than %d bytes in one call: split it", coord.ErrTooLarge, command.MaxCommand)
		}
	}
	return buf, nil
}

// restored settles the calls that a snapshot has executed; others that were
// ordered below it are proposed again.
//
// REQUIRES: g.mu held.
func (l *Log) restored() {
	for _, c := range slices.Clone(l.calls) {
		if c.ordered == 0 || c.ordered > l.applied {
			continue
		}
		res := make([]command.Result, 0, len(c.cmds))
		for _, cmd := range c.cmds {
			if r, ok := l.m.Result(cmd.id); ok && cmd.id.Seq > 0 {
				res = append(res, r)
			}
		}
		if len(res) == len(c.cmds) {
			c.finish(res, nil)
			continue
		}
		c.ordered = 0
		l.g.changed.Fire() // its Propose sends it again
	}
}

// Sync implements coord.Log.
func (l *Log) Sync(ctx context.Context) (uint64, error) {
	var want uint64 // entry to reach, once a leader has told it
	for {
		changed, progress := l.g.changed.Wait(), l.progress.Wait()
		l.g.mu.Lock()
		closed, err := l.closed || l.err != nil, l.closedErr()
		if want == 0 && l.reachable() && l.g.lead != "" {
			want = l.g.last()
		}
		reached, index := want > 0 && l.applied >= want, l.m.Index()
		l.g.mu.Unlock()
		switch {
		case closed:
			return 0, fmt.Errorf("sync: %w", err)
		case reached:
			return index, nil
		}
		select {
		case <-changed:
		case <-progress:
		case <-ctx.Done():
			return 0, fmt.Errorf("sync: %w: %w", coord.ErrNoLead, context.Cause(ctx))
		}
	}
}

// Status implements coord.Log.
func (l *Log) Status() coord.Status {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	s := coord.Status{
		Term: l.g.term, Voters: l.g.voters(), Members: slices.Clone(l.g.order),
		CaughtUp: l.applied == l.g.last(),
	}
	if l.reachable() && l.g.lead != "" {
		s.Lead, s.Term = l.g.lead, l.g.term
		s.IsLead = l.g.lead == l.site
	}
	return s
}

// Changed implements coord.Log.
func (l *Log) Changed() <-chan struct{} { return l.changed }

// Remove implements coord.Log.
func (l *Log) Remove(ctx context.Context, site string) error {
	if _, err := l.Sync(ctx); err != nil {
		return fmt.Errorf("remove site %s from the group: %w", site, err)
	}
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	i, found := slices.BinarySearch(l.g.order, site)
	if found && slices.Equal(l.g.voters(), []string{site}) {
		return fmt.Errorf("remove site %s from the group: %w: %w", site, coord.ErrRefused, errNotVoter)
	}
	if found {
		gone := l.g.members[site]
		l.g.order = slices.Delete(l.g.order, i, i+1)
		delete(l.g.members, site)
		gone.cut = true
		l.g.depose(site)
	}
	return nil
}

// Failed implements coord.Log.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Err implements coord.Log.
func (l *Log) Err() error {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	return l.err
}

// REQUIRES: g.mu held.
func (l *Log) fail(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	close(l.failed)
	l.endCalls()
}

// REQUIRES: g.mu held.
func (l *Log) closedErr() error {
	if l.err != nil {
		return fmt.Errorf("%w: %w", coord.ErrClosed, l.err)
	}
	return coord.ErrClosed
}

// endCalls settles the calls under way and leaves the group's quorum.
//
// REQUIRES: g.mu held.
func (l *Log) endCalls() {
	l.closed = true
	for _, c := range slices.Clone(l.calls) {
		err := l.closedErr()
		if c.ordered > 0 {
			err = fmt.Errorf("%w: %w", coord.ErrUnknown, err)
		}
		c.finish(nil, err)
	}
	l.progress.Fire()
	l.g.elect()
}

// Close implements coord.Log.
func (l *Log) Close() error {
	l.g.mu.Lock()
	first := !l.closed
	if first {
		l.endCalls()
		l.g.notify()
	}
	lead := l.g.members[l.g.lead]
	var told coord.Grantor
	if first && lead != nil {
		told = lead.grantor
	}
	l.g.mu.Unlock()
	if d, listens := told.(coord.Disconnected); listens {
		d.Disconnected(l.site)
	}
	return nil
}
