package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// answers collects what becomes of the requests of one call.
type answers struct {
	mu   sync.Mutex
	list []Answer
	left int
	done chan struct{}
}

func (a *answers) set(i int, ans Answer) {
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
func (b *Broker) Submit(ctx context.Context, reqs []Request) []Answer {
	if len(reqs) == 0 {
		return nil
	}
	got := &answers{list: make([]Answer, len(reqs)), left: len(reqs), done: make(chan struct{})}
	if b.post(submitEvent{reqs: reqs, reply: got.set}) {
		select {
		case <-got.done:
			return got.list
		case <-ctx.Done():
		case <-b.ctx.Done():
		}
	}
	why := error(ErrStopping)
	if ctx.Err() != nil {
		why = context.Cause(ctx)
	}
	return got.rest(why)
}

// rest gives those that have no answer an error: they may be accepted all the same.
func (a *answers) rest(why error) []Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := slices.Clone(a.list)
	for i := range list {
		if list[i].Err == nil && list[i].ID == (fsm.JobID{}) {
			list[i].Err = fmt.Errorf("no answer in time, the job may be accepted all the same: %w", why)
		}
	}
	return list
}

// orderPatience is how long a change waits for the quorum; it may be executed
// after that all the same.
const orderPatience = 10 * time.Second

// Cancel ends a job of this site; other sites' jobs are an *ElsewhereError.
func (b *Broker) Cancel(ctx context.Context, id fsm.JobID) error {
	if id.Site != b.cfg.Site {
		if _, err := b.Job(ctx, id); err != nil {
			return err
		}
		return b.elsewhere(id.Site, "owner")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, orderPatience, ErrNoQuorum)
	defer cancel()
	done := make(chan error, 1)
	if !b.post(cancelEvent{num: id.Num, reply: func(err error) { done <- err }}) {
		return fmt.Errorf("cancel job %s: %w", id, ErrStopping)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("cancel job %s: %w", id, context.Cause(ctx))
	case <-b.ctx.Done():
		return fmt.Errorf("cancel job %s: %w", id, ErrStopping)
	}
}

// elsewhere names the broker that can answer for a site.
func (b *Broker) elsewhere(site, role string) error {
	e := &ElsewhereError{Site: site, Role: role}
	known := false
	b.cfg.Replica.View(func(s *fsm.State) {
		if v, ok := s.Site(site); ok {
			known, e.HTTP = true, v.HTTP
		}
	})
	if !known {
		return fmt.Errorf("no site %s: %w", site, ErrNotFound)
	}
	return e
}

// Least retention of ended jobs: whoever waits for a job must be able to see its end.
const (
	leastRetainMs   = 60_000
	leastRetainJobs = 1000
)

// checkParams refuses what a running federation cannot use.
func checkParams(now, p fsm.Params) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrBadParams, err)
	}
	switch {
	case p.LeaseMs != now.LeaseMs || p.MarginMs != now.MarginMs || p.QuantumMs != now.QuantumMs:
		return fmt.Errorf("%w: lease_ms %d, margin_ms %d and quantum_ms %d are fixed since the federation was founded",
			ErrBadParams, now.LeaseMs, now.MarginMs, now.QuantumMs)
	case p.RetainMs < leastRetainMs || p.RetainJobs < leastRetainJobs:
		return fmt.Errorf("%w: retain_ms must be at least %d and retain_jobs %d, or nobody could see how a job ended",
			ErrBadParams, leastRetainMs, leastRetainJobs)
	}
	return nil
}

// SetParams changes the federation's parameters.
func (b *Broker) SetParams(ctx context.Context, p fsm.Params) error {
	if err := checkParams(b.Params(), p); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, orderPatience, ErrNoQuorum)
	defer cancel()
	done := make(chan fsm.Code, 1)
	err := b.ask(ctx, func(c *core) {
		c.out.add(&fsm.SetParams{Params: p}, func(r fsm.Result, _ stateReader, _ *effects) { done <- r.Code })
	})
	if err != nil {
		return err
	}
	select {
	case code := <-done:
		if code == fsm.OK {
			return nil
		}
		return fmt.Errorf("set policy: %w: %s", ErrBadParams, code)
	case <-ctx.Done():
		return fmt.Errorf("set policy: %w", context.Cause(ctx))
	case <-b.ctx.Done():
		return fmt.Errorf("set policy: %w", ErrStopping)
	}
}

// Logs opens a stream of an attempt that ran here, or names the broker that
// has it. With Follow it first waits for the task to start.
func (b *Broker) Logs(ctx context.Context, q LogQuery) (io.ReadCloser, error) {
	if q.Follow {
		if err := b.awaitStart(ctx, q); err != nil {
			return nil, err
		}
	}
	task, err := b.task(ctx, q.Job, q.Task)
	if err != nil {
		return nil, err
	}
	if task.Attempt == 0 || task.Site == "" {
		return nil, fmt.Errorf("task %s/%d has not started: %w", q.Job, q.Task, ErrNotFound)
	}
	if q.Attempt != 0 && q.Attempt != task.Attempt {
		return b.earlierLogs(ctx, q)
	}
	if task.Site != b.cfg.Site {
		return nil, b.elsewhere(task.Site, "executor")
	}
	id := executor.ID{Job: q.Job.String(), Task: q.Task, Attempt: task.Attempt, Token: task.Token}
	if err := b.awaitAccepted(ctx, id); err != nil {
		return nil, err
	}
	return b.logsOf(ctx, id, q)
}

// earlierLogs reads an attempt that is not the task's last one. Only the site
// that ran it knows it.
func (b *Broker) earlierLogs(ctx context.Context, q LogQuery) (io.ReadCloser, error) {
	for _, h := range b.handlers {
		f, ok := h.(executor.Finder)
		if !ok {
			continue
		}
		if id, found := f.Find(q.Job.String(), q.Task, q.Attempt); found {
			return b.logsOf(ctx, id, q)
		}
	}
	return nil, fmt.Errorf("attempt %d of task %s/%d did not run at this site, or its logs are gone: ask the broker of the site that ran it: %w",
		q.Attempt, q.Job, q.Task, ErrNotFound)
}

// logsOf opens a stream of an attempt that one of this site's handlers has.
func (b *Broker) logsOf(ctx context.Context, id executor.ID, q LogQuery) (io.ReadCloser, error) {
	for _, h := range b.handlers {
		r, err := h.Logs(ctx, id, q.Stream, q.Follow)
		if errors.Is(err, executor.ErrUnknownAttempt) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read logs of %s: %w", id, err)
		}
		return r, nil
	}
	return nil, fmt.Errorf("the logs of %s are gone: %w", id, ErrNotFound)
}

// awaitAccepted returns once no start of the attempt is under way here.
func (b *Broker) awaitAccepted(ctx context.Context, id executor.ID) error {
	ready := make(chan struct{})
	err := b.ask(ctx, func(c *core) {
		a := c.attempts[id]
		if a == nil || a.accepted || a.ended != nil {
			close(ready)
			return
		}
		a.waiters = append(a.waiters, ready)
	})
	if err != nil {
		return err
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for attempt %s: %w", id, context.Cause(ctx))
	case <-b.ctx.Done():
		return fmt.Errorf("wait for attempt %s: %w", id, ErrStopping)
	}
}

// task reads one task, wherever its job runs.
func (b *Broker) task(ctx context.Context, id fsm.JobID, index uint32) (Task, error) {
	tasks, _, err := b.Tasks(ctx, id, index, 1)
	if err != nil {
		return Task{}, err
	}
	if len(tasks) == 0 || tasks[0].Index != index {
		return Task{}, fmt.Errorf("job %s has no task %d: %w", id, index, ErrNotFound)
	}
	return tasks[0], nil
}

// awaitStart returns when the task has an attempt here or has ended.
func (b *Broker) awaitStart(ctx context.Context, q LogQuery) error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		var changed <-chan struct{}
		b.cfg.Replica.mu.RLock()
		changed = b.cfg.Replica.changed
		b.cfg.Replica.mu.RUnlock()
		t, err := b.task(ctx, q.Job, q.Task)
		if err != nil {
			return err
		}
		if t.Attempt > 0 || isEndName(t.State) {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C: // a home task's start changes no replicated state
		case <-ctx.Done():
			return fmt.Errorf("wait for task %s/%d: %w", q.Job, q.Task, context.Cause(ctx))
		case <-b.ctx.Done():
			return fmt.Errorf("wait for task %s/%d: %w", q.Job, q.Task, ErrStopping)
		}
	}
}

// Params returns the federation's parameters.
func (b *Broker) Params() (p fsm.Params) {
	b.cfg.Replica.View(func(s *fsm.State) { p = s.Params() })
	return p
}

// Queue returns what waits, per owner, with the priorities now.
func (b *Broker) Queue() (q []fsm.QueueView) {
	b.cfg.Replica.View(func(s *fsm.State) { q = s.Queue() })
	return q
}

// Ledger returns contributions, utilities and priorities.
func (b *Broker) Ledger() (l fsm.LedgerView) {
	b.cfg.Replica.View(func(s *fsm.State) { l = s.Ledger() })
	return l
}

// Index is the number of the last entry applied here.
func (b *Broker) Index() uint64 { return b.cfg.Replica.Index() }

// Site is this broker's own.
func (b *Broker) Site() string { return b.cfg.Site }

// Live returns why the process is of no use any more, or nil.
func (b *Broker) Live() error { return b.Err() }

// Ready returns why requests should go elsewhere, or nil: the broker is
// registered, a lead is known and the state is current.
func (b *Broker) Ready() error {
	b.mu.Lock()
	registered, stopping := b.registered, b.stopping
	b.mu.Unlock()
	status := b.cfg.Log.Status()
	switch {
	case b.Err() != nil:
		return b.Err()
	case stopping:
		return ErrStopping
	case status.Lead == "":
		return fmt.Errorf("no lead is known: %w", ErrNoQuorum)
	case registered == 0:
		return fmt.Errorf("not registered with the federation yet: %w", ErrNotReady)
	case executor.Boottime() >= b.leaseUntil.Load():
		return fmt.Errorf("this site has no lease from the lead: %w", ErrNotReady)
	case !status.CaughtUp:
		return fmt.Errorf("the state is behind the federation's: %w", ErrNotReady)
	}
	return nil
}

// Metrics returns the broker's figures.
func (b *Broker) Metrics(ctx context.Context) Metrics {
	m := Metrics{
		JournalSyncs:       b.metrics.syncs.Load(),
		JournalSyncSeconds: float64(b.metrics.syncNanos.Load()) / 1e9,
		Index:              b.Index(),
	}
	_ = b.ask(ctx, func(c *core) { // a stopping broker shows zeros
		m.Attempts, m.HomeWaiting = len(c.attempts), len(c.home.waiting)
		m.Publishing, m.Keys = len(c.pubs.byJob), c.keys.held
	})
	return m
}
