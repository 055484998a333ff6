package homelogs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
)

// Stats is what a puller has done since it began.
type Stats struct {
	Brought, Bytes uint64 // outputs that came, and their bytes
	Missing        uint64 // outputs that their sites do not give
	Questions      uint64
	Failed         uint64 // questions, and tries to reach a site
	Waiting        int    // outputs that are known and have not come
	GivenUp        uint64 // outputs at which their sites broke off again and again
}

// Puller brings outputs home.
type Puller struct {
	cfg    Config
	around Around

	mu      sync.Mutex
	workers map[string]*worker // by site; guarded by mu
	running sync.WaitGroup

	brought, bytes, missing, questions, failed, givenUp atomic.Uint64
}

// New returns a puller that does nothing yet. What a former life has left half taken is removed.
func New(cfg Config, around Around) (*Puller, error) {
	if cfg.Store == nil || cfg.Dial == nil || cfg.Most <= 0 || cfg.Inline <= 0 || cfg.Keep <= 0 {
		return nil, errors.New("bring outputs home: store, dial, most, inline and keep must be set")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("bring outputs home: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(cfg.Dir, "*"+partExt))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return nil, fmt.Errorf("bring outputs home: remove what a former start has left: %w", err)
	}
	return &Puller{cfg: cfg, around: around, workers: map[string]*worker{}}, nil
}

// Run works until ctx ends.
func (p *Puller) Run(ctx context.Context) {
	defer p.running.Wait()
	select {
	case <-p.around.Current:
	case <-ctx.Done():
		return
	}
	sub := p.around.Events(p.around.Now(), node.EventFilter{
		Site: p.around.Site, Kinds: map[fsm.EventKind]bool{
			fsm.EventTaskEnded: true, fsm.EventTaskRequeued: true, fsm.EventTaskHeld: true,
		},
	})
	p.sweepAll(ctx)
	for {
		events, err := sub.Next(ctx)
		switch {
		case errors.Is(err, node.ErrEventsLost):
			p.sweepAll(ctx)
		case err != nil:
			return
		}
		for i := range events {
			p.take(ctx, &events[i])
		}
	}
}

// neverRan are the endings of attempts that have written nothing, or may still write: of those another end follows.
var neverRan = map[fsm.Ending]bool{
	fsm.EndDeclined: true, fsm.EndUnstarted: true, fsm.EndUnopened: true, fsm.EndHandedBack: true,
	fsm.EndSuspected: true,
}

// take notes what an event says has ended at another site. That an attempt has started may never be told: its site
// drops that word if the end came first.
func (p *Puller) take(ctx context.Context, e *node.Event) {
	elsewhere := e.Job.Site == p.around.Site && e.Site != "" && e.Site != p.around.Site && e.ID.Home == 0
	if !elsewhere || e.Attempt == 0 || neverRan[e.End] {
		return
	}
	to := p.worker(ctx, e.Site)
	for n := range e.Count {
		to.queue.add(want{
			Ref: asklogs.Ref{
				Num: e.Job.Num, Task: p.around.Source.Position(e.Job, e.Task+n), Attempt: e.Attempt,
			},
			token: e.Token, ended: e.At,
		})
	}
}

// sweepAll has the state looked through for each site.
func (p *Puller) sweepAll(ctx context.Context) {
	for _, site := range p.around.Source.Sites() {
		p.worker(ctx, site).queue.sweep()
	}
}

// worker returns a site's worker.
func (p *Puller) worker(ctx context.Context, site string) *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.workers[site]
	if w == nil {
		w = &worker{
			Puller: p, site: site, queue: newQueue(), sweep: sweep{site: site, source: p.around.Source},
			size: asklogs.MaxAttempts,
			log:  p.around.Logger.With().Str("site", site).Logger(),
		}
		p.workers[site] = w
		p.running.Go(func() { w.run(ctx) })
	}
	return w
}

// Stats returns what was done.
func (p *Puller) Stats() Stats {
	s := Stats{
		Brought: p.brought.Load(), Bytes: p.bytes.Load(), Missing: p.missing.Load(),
		Questions: p.questions.Load(), Failed: p.failed.Load(), GivenUp: p.givenUp.Load(),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		s.Waiting += w.queue.len()
	}
	return s
}
