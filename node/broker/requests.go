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
	if len(reqs) == 0 {
		return nil
	}
	got := &answers{list: make([]node.Answer, len(reqs)), left: len(reqs), done: make(chan struct{})}
	if b.post(core.SubmitEvent{Reqs: reqs, Full: b.disk.full(), Reply: got.set}) {
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
		if _, err := b.Job(ctx, id); err != nil {
			return err
		}
		return b.elsewhere(id.Site, "owner")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, orderPatience, node.ErrNoQuorum)
	defer cancel()
	done := make(chan error, 1)
	if !b.post(core.CancelEvent{Num: id.Num, At: node.AskedFrom(ctx), Reply: func(err error) { done <- err }}) {
		return fmt.Errorf("cancel job %s: %w", id, node.ErrStopping)
	}
	return b.cancelOutcome(ctx, id, done)
}

// Current returns why this broker cannot tell yet what the federation knows, or
// nil. After a start the state is rebuilt once a leader is found: until then
// nothing can be said of what is not found in it.
func (b *Broker) Current() error {
	select {
	case <-b.current:
		return nil
	default:
	}
	return fmt.Errorf("%w: no quorum was found since this broker started, so it does not know the federation's state yet", node.ErrNotReady)
}

// missing returns the error for what is found neither here nor in the state.
func (b *Broker) missing(what string) error {
	if err := b.Current(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w", what, node.ErrNotFound)
}

// missingJob is missing for a job: one that has ended may not be kept any more.
func (b *Broker) missingJob(id command.JobID) error {
	retired := false
	b.cfg.Replica.View(func(s *fsm.State) { retired = s.Retired(id) })
	if retired && b.Current() == nil {
		return fmt.Errorf("job %s has ended and is no longer kept; cloudshare report sums up what is archived: %w", id, node.ErrNotFound)
	}
	return b.missing("job " + id.String())
}

// elsewhere names the broker that can answer for a site.
func (b *Broker) elsewhere(site, role string) error {
	e := &node.ElsewhereError{Site: site, Role: role}
	known := false
	b.cfg.Replica.View(func(s *fsm.State) {
		if v, ok := s.Site(site); ok {
			known, e.HTTP = true, v.HTTP
		}
	})
	if !known {
		return b.missing("no site " + site)
	}
	return e
}

// SetParams changes the federation's parameters.
func (b *Broker) SetParams(ctx context.Context, p command.Params) error {
	now := b.Params()
	if err := checkParams(now, p); err != nil {
		return err
	}
	if p.Policy != now.Policy {
		var err error
		if b.cfg.Replica.View(func(s *fsm.State) { err = s.CanUse(p.Policy) }); err != nil {
			return fmt.Errorf("%w: %w", node.ErrBadParams, err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, orderPatience, node.ErrNoQuorum)
	defer cancel()
	done := make(chan command.Code, 1)
	full := false
	err := b.query(ctx, func(c *core.Core) {
		full = !c.Set(p, done)
	})
	if err != nil {
		return err
	}
	if full {
		return fmt.Errorf("set policy: %w: %d changes wait for a quorum already: try again when there is one", node.ErrFull, core.MaxSettings)
	}
	select {
	case code := <-done:
		if code == command.OK {
			return nil
		}
		return fmt.Errorf("set policy: %w: %s", node.ErrBadParams, code)
	case <-ctx.Done():
		return fmt.Errorf("set policy: %w: %s", context.Cause(ctx), stillOrdered)
	case <-b.ctx.Done():
		return fmt.Errorf("set policy: %w", node.ErrStopping)
	}
}

// Params returns the federation's parameters.
func (b *Broker) Params() (p command.Params) {
	b.cfg.Replica.View(func(s *fsm.State) { p = s.Params() })
	return p
}

// Queue returns what waits, per owner, with the priorities now.
func (b *Broker) Queue() (q []fsm.QueueView) {
	b.cfg.Replica.View(func(s *fsm.State) { q = s.Queue() })
	return q
}

// Ledger returns contributions, utilities and priorities.
func (b *Broker) Ledger() fsm.LedgerView {
	var f *fsm.FrozenLedger
	b.cfg.Replica.View(func(s *fsm.State) { f = s.FreezeLedger() })
	return f.View()
}

// Index returns the number of the last entry applied here.
func (b *Broker) Index() uint64 { return b.cfg.Replica.Index() }

// Site returns this broker's own.
func (b *Broker) Site() string { return b.cfg.Site }

// Live returns why the process is of no use any more, or nil: it works, and what
// it writes to its journal gets there.
func (b *Broker) Live() error { return cmp.Or(b.Err(), b.stalled()) }

// Ready returns why requests should go elsewhere, or nil: the broker is
// registered and not lost since, a leader is known, the state is current and the disk has room.
func (b *Broker) Ready() error {
	b.mu.Lock()
	stopping := b.stopping
	b.mu.Unlock()
	status := b.cfg.Log.Status()
	switch {
	case b.Live() != nil:
		return b.Live()
	case stopping:
		return node.ErrStopping
	case b.disk.full() != nil:
		return b.disk.full()
	case status.Lead == "":
		return fmt.Errorf("no leader is known: %w", node.ErrNoQuorum)
	case b.outside() != nil:
		return b.outside()
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
		JournalSyncs:       b.metrics.syncs.Load(),
		JournalSyncSeconds: float64(b.metrics.syncNanos.Load()) / 1e9,
		Index:              b.Index(),
		FreeBytes:          b.disk.free.Load(),
	}
	if l, ok := b.cfg.Log.(coord.Measured); ok {
		m.Log = l.Figures()
	}
	m.Declined, m.Lost = b.core.HandlerTallies().List(b.cfg.Handlers)
	m.Troubled = b.core.MachineTroubles().Count()
	for _, h := range b.cfg.Handlers {
		m.Troubled[h.Name()] += 0
	}
	b.cfg.Replica.View(func(s *fsm.State) { m.Dying, m.PendingWork = s.Dying(), s.PendingWork() })
	_ = b.query(ctx, func(c *core.Core) { // a stopping broker shows zeros
		f := c.Figures()
		m.Attempts, m.HomeWaiting, m.Publishing, m.Keys = f.Attempts, f.HomeWaiting, f.Publishing, f.Keys
	})
	return m
}
