package relay

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// Outcome of one attempt to have a call ordered.
type Outcome uint8

// The outcomes.
const (
	Ordered  Outcome = iota // it stands in the log; the result comes by local apply
	Refused                 // certainly not ordered by this attempt
	Unknown                 // it may be ordered, now or later
	rejected                // the leader will never order it: it cannot be decoded, or is another's
)

// attempts is what is known about all attempts of a call so far.
type attempts struct {
	made     int
	underWay bool   // sent, no outcome yet
	refused  bool   // some attempt was refused
	unknown  bool   // Invariant: once set, the call may be executed, forever.
	index    uint64 // index of an attempt that was ordered, 0 = none
}

// mayBeExecuted reports whether the call may be executed.
func (a attempts) mayBeExecuted() bool { return a.underWay || a.unknown || a.index != 0 }

// proposal is one Propose call under way.
type proposal struct {
	seq   uint64
	ids   []command.ID
	cmds  [][]byte
	bytes int
	// term, if not 0, is the only term whose leader, this member, may order it;
	// it is never forwarded or retried.
	term uint64
	// urgent: it holds more than reports, see isReport.
	urgent bool
	// judgement: it holds what only a leader's own broker says. At the leader it goes
	// before all other calls.
	judgement bool
	// alone: a leader has rejected a bundle with it. It goes in one of its own, for others may be well.
	alone bool
	// late is how often it was given up. Guarded by the mu of the link that it was sent over.
	late lateness

	done    chan struct{} // closed under pending.mu when settled
	settled bool
	results []command.Result
	err     error
	// memory is what the call holds of pending.memory; gone: nobody waits for it.
	memory share
	gone   bool

	attempts attempts
}

// pending is the table of this member's calls. A call is in the table from
// Propose until it is settled or abandoned; in the queue while it waits for a
// route; otherwise an attempt is under way.
type pending struct {
	mu     sync.Mutex
	origin uint64
	next   uint64
	calls  map[uint64]*proposal
	queue  []*proposal
	// resting calls wait out a pause before they are queued again; a change of
	// lead ends it.
	resting map[*proposal]struct{}
	closed  error
	// memory bounds the calls of the table and those whose attempt is under way,
	// though their callers gave up: whoever proposes more waits.
	memory *budget
}

// maxPending is how many bytes of calls a member has under way. They wait for as long
// as no leader takes them.
const maxPending = 64 << 20

func newPending(origin uint64) *pending {
	return &pending{
		origin: origin, calls: map[uint64]*proposal{}, resting: map[*proposal]struct{}{},
		memory: newBudget(maxPending, maxPending, maxPending),
	}
}

// cost returns what a call holds in memory.
func (c *proposal) cost() int { return c.bytes + callCost + commandCost*len(c.cmds) }

// admit waits until there is memory for a call; false: ctx ended before. A site's
// loss waits for nothing: it is of its term.
func (p *pending) admit(ctx context.Context, c *proposal) bool {
	c.memory = share{of: p.memory}
	return c.term != 0 || c.memory.acquire(ctx, c.cost())
}

// free gives back what a call holds once nobody waits for it and no attempt is under
// way. REQUIRES: p.mu held.
func (p *pending) free(c *proposal) {
	if c.gone && !c.attempts.underWay {
		c.memory.release(c.memory.held)
	}
}

// add puts a new call at the end of the queue.
func (p *pending) add(c *proposal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		c.gone = true
		p.free(c)
		return p.closed
	}
	p.next++
	c.seq = p.next
	p.calls[c.seq] = c
	p.queue = append(p.queue, c)
	return nil
}

// markResting marks a call whose attempt failed; made is how many were.
func (p *pending) markResting(c *proposal) (made int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[c.seq] == c {
		p.resting[c] = struct{}{}
	}
	return c.attempts.made
}

// wake puts resting calls back into the queue: one, or all for nil.
func (p *pending) wake(one *proposal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.resting[one]; ok {
		p.queue = append(p.queue, one)
		delete(p.resting, one)
	}
	if one == nil {
		p.queue = slices.AppendSeq(p.queue, maps.Keys(p.resting))
		clear(p.resting)
	}
}

// takeQueue empties the queue: an attempt is under way for each call returned.
func (p *pending) takeQueue() []*proposal {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.queue
	p.queue = nil
	for _, c := range calls {
		c.attempts.made++
		c.attempts.underWay = true
	}
	return calls
}

// settleUnroutable settles the waiting calls that must not wait for a leader.
func (p *pending) settleUnroutable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := 0; i < len(p.queue); {
		if c := p.queue[i]; c.term != 0 {
			p.settleCall(c, nil, fmt.Errorf("propose %s: %w", name(c.ids), coord.ErrNoLead))
			continue
		}
		i++
	}
}

// settleExecuted settles a call that the state has executed.
func (p *pending) settleExecuted(c *proposal, result func(command.ID) (command.Result, bool)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.settled {
		return true
	}
	res, ok := recorded(c.ids, result)
	if ok && p.calls[c.seq] == c {
		p.settleCall(c, res, nil)
	}
	return ok
}

// recordOutcome records the outcome of an attempt; live says whether the call still
// waits for its result.
func (p *pending) recordOutcome(c *proposal, o Outcome, index uint64) (live bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &c.attempts
	a.underWay = false
	switch o {
	case Ordered:
		a.index = index
	case Unknown:
		a.unknown = true
	case Refused, rejected:
		a.refused = true
	}
	c.alone = c.alone || o == rejected
	p.free(c)
	return p.calls[c.seq] == c
}

// ordered returns the calls that a leader said to be ordered at an index up to most, and of which nothing else is under
// way. Those that this member has passed, and that stand here all the same, are not where the leader said.
func (p *pending) ordered(most uint64) (calls []*proposal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if a := &c.attempts; a.index == 0 || a.index > most || a.underWay {
			continue
		}
		if _, rests := p.resting[c]; !rests && !slices.Contains(p.queue, c) {
			calls = append(calls, c)
		}
	}
	return calls
}

// abandon removes a call whose caller gave up, and tells what is known. ok is
// false if it was settled just before.
func (p *pending) abandon(c *proposal) (a attempts, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.settled {
		return attempts{}, false
	}
	p.unqueue(c)
	delete(p.calls, c.seq)
	delete(p.resting, c)
	c.gone = true
	p.free(c)
	return c.attempts, true
}

// REQUIRES: p.mu held.
func (p *pending) unqueue(c *proposal) {
	if i := slices.Index(p.queue, c); i >= 0 {
		p.queue = append(p.queue[:i:i], p.queue[i+1:]...)
	}
}

// apply settles those of an entry's calls that are ours, by the batch and its results. unsigned are those that
// were not taken for ours.
func (p *pending) apply(calls []call, batch []byte, results []command.Result) (unsigned []*proposal) {
	at := 0
	var cmds [][]byte // of the batch
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range calls {
		end := at + c.commands
		own := p.calls[c.seq]
		if c.origin == p.origin && own != nil {
			if cmds == nil {
				cmds, _ = command.Split(batch)
			}
			switch {
			case end > len(cmds) || !slices.EqualFunc(own.cmds, cmds[at:end], bytes.Equal):
				// a leader has put other ones here
			case slices.ContainsFunc(results[at:end], isNotSigned):
				unsigned = append(unsigned, own)
			default:
				p.settleCall(own, slices.Clone(results[at:end]), nil)
			}
		}
		at = end
	}
	return unsigned
}

func isNotSigned(r command.Result) bool { return r.Code == command.NotSigned }

// restored settles the calls that a snapshot up to a raft index has executed.
// Those that were ordered below it and cannot be found in the state (a
// registration has no id of its own) come back as again: the caller retries
// them, which is harmless under the same ids.
func (p *pending) restored(index uint64, result func(command.ID) (command.Result, bool)) (again []*proposal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if res, ok := recorded(c.ids, result); ok {
			p.settleCall(c, res, nil)
		} else if c.attempts.index != 0 && c.attempts.index <= index {
			again = append(again, c)
		}
	}
	return again
}

func recorded(ids []command.ID, result func(command.ID) (command.Result, bool)) ([]command.Result, bool) {
	out := make([]command.Result, 0, len(ids))
	for _, id := range ids {
		r, ok := result(id)
		if !ok || id.Seq == 0 {
			return nil, false
		}
		out = append(out, r)
	}
	return out, true
}

// fail settles one call with an error.
func (p *pending) fail(c *proposal, err func(attempts) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[c.seq] == c {
		p.settleCall(c, nil, err(c.attempts))
	}
}

// close settles every call with an error, and refuses new ones with closed.
func (p *pending) close(closed error, err func(attempts) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		p.closed = closed
	}
	for _, c := range p.calls {
		p.settleCall(c, nil, err(c.attempts))
	}
}

// REQUIRES: p.mu held.
func (p *pending) settleCall(c *proposal, res []command.Result, err error) {
	delete(p.calls, c.seq)
	delete(p.resting, c)
	p.unqueue(c)
	c.results, c.err, c.settled, c.gone = res, err, true, true
	p.free(c)
	close(c.done)
}
