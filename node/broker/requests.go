package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

// answers collects what becomes of the requests of one call.
type answers struct {
	mu   sync.Mutex
	list []node.Answer
	left int
	done chan struct{}
}

func (a *answers) set(i int, ans node.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list[i] = ans
	a.left--
	if a.left == 0 {
		close(a.done)
	}
}

// Submit accepts jobs: one answer per request, in order. Those that have no
// answer when ctx ends get its error; they may be accepted all the same.
func (b *Broker) Submit(ctx context.Context, reqs []node.Request) []node.Answer {
	return b.BeginSubmit(ctx, reqs)()
}

// BeginSubmit is Submit that does not wait: what is begun later comes later. The answers are awaited once.
func (b *Broker) BeginSubmit(ctx context.Context, reqs []node.Request) (await func() []node.Answer) {
	if len(reqs) == 0 {
		return func() []node.Answer { return nil }
	}
	got := &answers{list: make([]node.Answer, len(reqs)), left: len(reqs), done: make(chan struct{})}
	reply := got.set
	if slices.ContainsFunc(reqs, withFiles) {
		reqs, reply = b.owned.resolve(reqs, reply)
	}
	if slices.ContainsFunc(reqs, namesURLs) {
		reqs, reply = b.notify.resolve(reqs, reply)
	}
	if slices.ContainsFunc(reqs, hasAttached) {
		reqs, reply = b.exporter.resolve(reqs, reply)
	}
	posted := b.post(core.SubmitEvent{Reqs: reqs, Full: b.disk.Full(), Reply: reply})
	return func() []node.Answer { return b.await(ctx, got, posted) }
}

// await awaits the answers.
func (b *Broker) await(ctx context.Context, got *answers, posted bool) []node.Answer {
	if posted {
		select {
		case <-got.done:
			return got.list
		case <-ctx.Done():
		case <-b.ctx.Done():
		}
	}
	why := error(node.ErrStopping)
	if ctx.Err() != nil {
		why = context.Cause(ctx)
	}
	return got.withErrors(why)
}

// withErrors gives those that have no answer an error: they may be accepted all the same.
func (a *answers) withErrors(why error) []node.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := slices.Clone(a.list)
	for i := range list {
		if list[i].Err == nil && list[i].ID == (command.JobID{}) {
			list[i].Err = fmt.Errorf("no answer in time, the job may be accepted all the same: %w", why)
		}
	}
	return list
}

// orderPatience is how long a change waits for the quorum; it may be executed
// after that all the same.
const orderPatience = 10 * time.Second

// stillOrdered says what becomes of a change that was not executed in time.
const stillOrdered = "it is carried out all the same once there is one, unless this broker is restarted before"

// Cancel ends a job of this site; other sites' jobs are an *ElsewhereError.
func (b *Broker) Cancel(ctx context.Context, id command.JobID) error {
	if id.Site != b.cfg.Site {
		return b.changedElsewhere(ctx, id)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, orderPatience, node.ErrNoQuorum)
	defer cancel()
	done := make(chan error, 1)
	if !b.post(core.CancelEvent{Num: id.Num, At: node.AskedFrom(ctx), Reply: func(err error) { done <- err }}) {
		return fmt.Errorf("cancel job %s: %w", id, node.ErrStopping)
	}
	return b.cancelOutcome(ctx, id, done)
}

// SetParams changes the federation's parameters. Where electors decide, it returns the motion for that, unless it has
// passed at once.
func (b *Broker) SetParams(ctx context.Context, p command.Params) (*node.Motion, error) {
	decided := false
	b.cfg.Replica.View(func(s *fsm.State) { decided = s.RosterChanged() != 0 })
	switch {
	case !decided:
		return nil, b.orderParams(ctx, p)
	case p == b.Params():
		return nil, nil // nothing to decide
	}
	m, err := b.Propose(ctx, &command.Motion{What: command.MotionPolicy, Params: &p})
	if err != nil || m.State == "passed" {
		return nil, err
	}
	return &m, nil
}

// canSetParams refuses what could not be put in force now.
func (b *Broker) canSetParams(p command.Params) (err error) {
	now := b.Params()
	if err = checkParams(now, p); err != nil || p.Policy == now.Policy {
		return err
	}
	if b.cfg.Replica.View(func(s *fsm.State) { err = s.CanUse(p.Policy) }); err != nil {
		return fmt.Errorf("%w: %w", node.ErrBadParams, err)
	}
	return nil
}

// orderParams sets them in a federation without a roster.
func (b *Broker) orderParams(ctx context.Context, p command.Params) error {
	if err := b.canSetParams(p); err != nil {
		return err
	}
	r, err := b.order(ctx, "set policy", &command.SetParams{Params: p})
	if err == nil && r.Code != command.OK {
		err = fmt.Errorf("set policy: %w: %s", node.ErrBadParams, r.Code)
	}
	return err
}

// order has a command of this site ordered, and returns its result; what says who wants it, in an error's text.
func (b *Broker) order(ctx context.Context, what string, body command.Body) (command.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, orderPatience, node.ErrNoQuorum)
	defer cancel()
	done := make(chan command.Result, 1)
	full := false
	if err := b.query(ctx, func(c *core.Core) { full = !c.Order(body, done) }); err != nil {
		return command.Result{}, err
	}
	if full {
		return command.Result{}, fmt.Errorf("%s: %w: %d changes wait for a quorum already: try again when there is one",
			what, node.ErrFull, core.MaxOrders)
	}
	select {
	case r := <-done:
		return r, nil
	case <-ctx.Done():
		return command.Result{}, fmt.Errorf("%s: %w: %s", what, context.Cause(ctx), stillOrdered)
	case <-b.ctx.Done():
		return command.Result{}, fmt.Errorf("%s: %w", what, node.ErrStopping)
	}
}

// Live returns why the process is of no use any more, or nil: it works, and what
// it writes to its journal gets there.
func (b *Broker) Live() error { return cmp.Or(b.Err(), b.journal.stalled()) }

// Ready returns why requests should go elsewhere, or nil: the broker is
// registered and not lost since, a leader is known, the state is current and the disk has room.
func (b *Broker) Ready() error {
	b.stopMu.Lock()
	stopping := b.stopping
	b.stopMu.Unlock()
	status := b.cfg.Log.Status()
	switch {
	case b.Live() != nil:
		return b.Live()
	case stopping:
		return node.ErrStopping
	case b.disk.Full() != nil:
		return b.disk.Full()
	case b.registrar.refused() != nil:
		return b.registrar.refused()
	case status.Lead == "":
		return fmt.Errorf("no leader is known: %w", node.ErrNoQuorum)
	case b.registrar.outside() != nil:
		return b.registrar.outside()
	case executor.Boottime() >= b.leaseUntil.Load():
		return fmt.Errorf("this site has no lease from the leader: %w", node.ErrNotReady)
	case !status.CaughtUp:
		return fmt.Errorf("the state is behind the federation's: %w", node.ErrNotReady)
	}
	return nil
}

// Metrics returns the broker's figures.
func (b *Broker) Metrics(ctx context.Context) node.Metrics {
	m := node.Metrics{
		JournalSyncs:       b.committer.counters.syncs.Load(),
		JournalSyncSeconds: float64(b.committer.counters.syncNanos.Load()) / 1e9,
		Index:              b.Index(),
		FreeBytes:          b.disk.FreeBytes(),
		UnjustLosses:       b.losses.Load(),
	}
	if l, ok := b.cfg.Log.(coord.Measured); ok {
		m.Log = l.Figures()
	}
	m.Files = b.owned.metrics()
	m.Notices = b.notify.book.Figures(time.Now())
	m.Declined, m.Lost = b.core.HandlerTallies().List(b.cfg.Handlers)
	m.Troubled = b.core.MachineTroubles().Count()
	for _, h := range b.cfg.Handlers {
		m.Troubled[h.Name()] += 0
	}
	b.cfg.Replica.View(func(s *fsm.State) { m.Dying, m.PendingWork = s.Dying(), s.PendingWork() })
	_ = b.query(ctx, func(c *core.Core) { // a stopping broker shows zeros
		f := c.Figures()
		m.Attempts, m.HomeWaiting, m.Publishing, m.Keys = f.Attempts, f.HomeWaiting, f.Publishing, f.Keys
		m.HeldByHand, m.GatedTasks, m.AwaitInputs = f.HeldByHand, f.GatedTasks, f.AwaitInputs
		m.Users = f.Users
	})
	return m
}
