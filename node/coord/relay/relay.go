// Package relay brings calls to the leader of an ordered log, and is the leader's
// end of them: the half of step 3 of a job's way that raftlog and zk share.
//
// A call of Propose travels like this:
//
//  1. Propose encodes it and puts it into the table of pending calls (propose.go, pending.go).
//  2. It goes to this member's sequencer if it leads, else over one connection
//     to the leader's (forward.go, serve.go, frames.go, mux.go).
//  3. The leader collects what waits into an entry, stamps it, and has the backend
//     append it with a header that names the calls (sequencer.go, entry.go).
//  4. Each member applies the entry; the one that proposed finds its calls in
//     the header and returns their results (Applied).
//
// Whatever fails in between is repeated under the same command ids until the
// caller's context ends. The package imports fsm and coord, and no backend.
package relay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// ErrRetry is what a Backend answers when it is not, or not yet, the leader: the
// asker asks again, whoever leads then.
var ErrRetry = errors.New("not the leader now")

// Backend is the log behind the calls. Its indexes are positions in the log that
// only grow; they need not be entry numbers.
type Backend interface {
	// Lead says where calls go now: to this member, to another, or to nobody.
	Lead() (to Peer, self bool)
	// Orders returns the term that this member may order entries in, whether or
	// not it has applied one of it.
	Orders() (term uint64, ok bool)
	// Term is the newest term that this member knows of.
	Term() uint64
	// Append sends an entry, in the order of the calls; wait returns what became
	// of it, with its index if it is Ordered. One goroutine calls it.
	Append(term uint64, data, header []byte) (wait func() (Outcome, uint64))
	// Confirm returns, once this member was the leader of term at a moment after
	// the call began, an index that covers all that was committed before it.
	Confirm(ctx context.Context, term uint64) (index uint64, err error)
	// Remove and Demote decide at the leader. ErrRetry: ask again; any other error
	// is a refusal, whose text goes to the asker.
	Remove(ctx context.Context, site string) error
	Demote(ctx context.Context, site string) error
	// With calls f while no Apply runs.
	With(f func(coord.Machine))
	// Closed is why the log ends: coord.ErrClosed, with what it failed of.
	Closed() error
}

// Hooks observe; each may be nil, must not block, and may be called from any
// goroutine.
type Hooks struct {
	Entry   func(commands, bytes int) // the leader sent an entry
	Forward func(groups int)          // a frame of calls went to the leader
}

// Timing of the calls.
type Timing struct {
	RPC                 time.Duration // one dial
	Reply               time.Duration // the leader's answer to a forwarded frame
	Confirm             time.Duration // a leader that cannot confirm by then answers nothing
	Backoff, MaxBackoff time.Duration // between attempts of a call
	Slots               int           // entries in flight
	Gather              int           // commands that do not wait for the entry in flight
	Bundles             int           // under way to the leader at once, unless many commands wait; 0 = any number
	EntryBytes          int           // beyond them no further call joins an entry
	Rest                time.Duration // after an entry, before one with nothing but reports; 0 = none
	Pace                time.Duration // between two entries, or bundles to a leader, in flight at once; 0 = one waits
	Quota               Quota         // of one site
}

// Config of Calls; all but Hooks and Proofs is required.
type Config struct {
	Site    string
	Backend Backend
	// Position is where this member's machine stands, as the backend counts.
	Position *Position
	Mux      *Mux
	Dialer   *Dialer
	Timing   Timing
	Hooks    Hooks
	// Proofs is told which bundles were found to be their sites'; may be nil.
	Proofs *coord.Proofs
	// Ready is called when the first entry of a term that this member leads was
	// ordered.
	Ready func()
}

// Calls are a member's calls, and its end of the others' while it leads.
type Calls struct {
	cfg     Config
	t       Timing
	ctx     context.Context // ends with the log
	pending *pending
	by      *author
	seq     *sequencer
	forward *forwarder
	reads   *reads
	budgets budgets // of the forward connections that it serves
	grantor atomic.Pointer[coord.Grantor]
	flying  sync.WaitGroup // the sequencer's two: they wait for the backend

	leadChange coord.Broadcast

	complaints complaints
	doubts     doubts // of what other sites send
}

// New returns the calls of a member of a group; they end with ctx. Commands are signed for the federation.
func New(ctx context.Context, cfg Config, federation, group [16]byte) *Calls {
	c := &Calls{
		cfg: cfg, t: cfg.Timing, ctx: ctx, pending: newPending(rand.Uint64()), budgets: newBudgets(),
		by: newAuthor(&cfg, federation),
	}
	c.seq = newSequencer(cfg.Backend, c.by, cfg.Timing, cfg.Hooks, cfg.Ready)
	c.forward = &forwarder{
		ctx: ctx, dialer: cfg.Dialer, fed: group, by: c.by, origin: c.pending.origin, t: cfg.Timing, hooks: cfg.Hooks,
		outcome: c.outcome,
	}
	c.reads = &reads{c: c}
	return c
}

// Start runs the leader's end. Wait and Drain wait for it.
func (c *Calls) Start() {
	c.flying.Go(func() { c.seq.order(c.ctx) })
	c.flying.Go(c.seq.settleEntries)
}

// Drain waits for the entries in flight, for so long at most, once the context of
// New has ended.
func (c *Calls) Drain(d time.Duration) { WaitAtMost(&c.flying, d) }

// CloseReads refuses current reads and renewals at this member from now on, and
// waits for those under way.
func (c *Calls) CloseReads() { c.reads.close() }

// Wait waits for the connection to the leader, once the context of New has ended.
func (c *Calls) Wait() { c.forward.wait() }

// WaitAtMost waits for goroutines that may hang.
func WaitAtMost(wg *sync.WaitGroup, d time.Duration) {
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		wg.Wait()
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ch:
	case <-t.C:
	}
}

// End settles the calls under way and refuses new ones.
func (c *Calls) End() {
	closed := c.cfg.Backend.Closed()
	c.pending.close(closed, func(a attempts) error {
		if a.mayBeExecuted() {
			return fmt.Errorf("%w: %w", coord.ErrUnknown, closed)
		}
		return closed
	})
}

// LeadChanged sends what waits to the leader known now.
func (c *Calls) LeadChanged() {
	to, _ := c.cfg.Backend.Lead()
	c.forward.leadChanged(to)
	c.leadChange.Fire()
	c.settleOrdered(math.MaxUint64)
	c.pending.wake(nil)
	c.dispatch()
}

// NextLead returns a channel that the next LeadChanged closes.
func (c *Calls) NextLead() <-chan struct{} { return c.leadChange.Wait() }

// Tick is to be called about twice a second: it gives up a leader that owes an
// answer for too long, or a call that is owed one, looks after calls that are not where a leader said, and sends what
// waits.
func (c *Calls) Tick(now time.Time) {
	c.forward.giveUpOverdue(now)
	if c.cfg.Mux != nil {
		c.complaints.tell(&c.cfg.Mux.log, now)
	}
	c.settleOrdered(c.cfg.Position.Now())
	c.dispatch()
}

// Redial ends the connection to the leader; the next call opens another.
func (c *Calls) Redial() { c.forward.drop(Peer{}) }

// Idle asks for an empty entry if nothing moved time since it was called last.
// Called twice per tick, it leaves at most a tick between two entries.
func (c *Calls) Idle() { c.seq.idle() }

// RequestEntry asks for an entry at once if this member leads: its machine has work left.
func (c *Calls) RequestEntry() {
	if _, leads := c.cfg.Backend.Orders(); leads {
		c.seq.tick()
	}
}

// FirstEntry asks for an entry even if nothing waits.
func (c *Calls) FirstEntry() { c.seq.tick() }

// Leading returns the term that this member leads, with an entry of it applied.
func (c *Calls) Leading() (term uint64, ok bool) { return c.seq.leading() }

// Leads reports whether this member leads and has applied an entry of its term.
func (c *Calls) Leads() bool {
	_, ok := c.seq.leading()
	return ok
}

// Held returns how long sites' calls have waited for their quotas while this member led,
// by site, for those that did, and this one.
func (c *Calls) Held() map[string]time.Duration {
	held := c.seq.heldFor()
	held[c.cfg.Site] += 0
	return held
}

// Applied settles those of an entry's calls that are this member's. Those whose commands are not where the header has
// them, and those that were not taken for this member's, are sent again once they are known to be ordered and passed.
func (c *Calls) Applied(h *Header, batch []byte, results []command.Result) {
	for _, p := range c.pending.apply(h.calls, batch, results) {
		c.complaints.add(unsignedCall, p) // its outcome, or Tick, has it sent again
	}
}

// Restored settles the calls that a snapshot up to an index has executed. The
// others that were ordered below it are sent again by again, to be called beside
// no lock of the machine: that is harmless under the same ids.
func (c *Calls) Restored(index uint64, result func(command.ID) (command.Result, bool)) (again func()) {
	lost := c.pending.restored(index, result)
	return func() {
		for _, p := range lost {
			c.resendLater(p)
		}
	}
}

// awaitApplied returns once this member has applied the index.
func (c *Calls) awaitApplied(ctx context.Context, index uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(c.cfg.Backend.Closed()) })()
	return c.cfg.Position.Wait(ctx, index)
}
