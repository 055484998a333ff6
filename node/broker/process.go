package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
)

// process is the life of a broker's goroutines, and how they reach the core: they end with
// it, each may fail it, and all give their events to the one that owns the core.
type process struct {
	ctx    context.Context //nolint:containedctx // the life of the broker's goroutines
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	log    zerolog.Logger
	events chan core.Event
	// remedy adds to an error what helps.
	remedy func(error) error

	mu      sync.Mutex
	failure error
	failed  chan struct{}
}

func newProcess(log zerolog.Logger, remedy func(error) error) *process {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &process{
		ctx: ctx, cancel: cancel, log: log, remedy: remedy,
		events: make(chan core.Event, 1024), failed: make(chan struct{}),
	}
}

func (p *process) goroutine(f func()) {
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		f()
	}()
}

// endUnless fails the broker with err unless it is being stopped anyway.
func (p *process) endUnless(err error) {
	if p.ctx.Err() == nil {
		p.fail(err)
	}
}

// fail stops the broker for good; Failed is closed and Err says why.
func (p *process) fail(err error) {
	err = p.remedy(err)
	p.mu.Lock()
	first := p.failure == nil
	if first {
		p.failure = err
		close(p.failed)
	}
	p.mu.Unlock()
	if first {
		p.log.Error().Err(err).Msg("broker stops")
		p.cancel(err)
	}
}

// Failed is closed when the broker stopped by itself.
func (p *process) Failed() <-chan struct{} { return p.failed }

// Err says why it failed, nil while it works.
func (p *process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// post gives an event to the loop; it reports false when the broker stops.
func (p *process) post(ev core.Event) bool {
	select {
	case p.events <- ev:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// query runs f on the loop's goroutine and waits for it.
func (p *process) query(ctx context.Context, f func(*core.Core)) error {
	return p.postAndWait(ctx, func(done func()) core.Event {
		return core.AskEvent(func(c *core.Core) { f(c); done() })
	})
}

// postAndWait posts an event and waits until its answer has called done, once. On an error that may still come.
func (p *process) postAndWait(ctx context.Context, event func(done func()) core.Event) error {
	done := make(chan struct{})
	if !p.post(event(func() { close(done) })) {
		return fmt.Errorf("ask broker: %w", node.ErrStopping)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ask broker: %w", context.Cause(ctx))
	case <-p.ctx.Done():
		return fmt.Errorf("ask broker: %w", node.ErrStopping)
	}
}

// until waits for a condition of the core, or for ctx.
func (p *process) until(ctx context.Context, cond func(*core.Core) bool) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		over := false
		if err := p.query(ctx, func(c *core.Core) { over = cond(c) }); err != nil || over {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
