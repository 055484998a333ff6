package delivery

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/broker/results"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// State is the replicated state, as far as deliveries to this site go.
type State interface {
	// Since returns what of them changed behind an entry, and the entry that this is as of: see
	// fsm.State.DeliveriesSince.
	Since(entry uint64) (changed []fsm.Delivery, whole bool, now uint64)
	// Await returns when they have changed behind an entry, or ctx ends.
	Await(ctx context.Context, entry uint64) error
	// Now is log time in milliseconds.
	Now() int64
	// Where returns a site's peer address, "" = it has none, and the state's entry.
	Where(site string) (addr string, entry uint64)
}

// Wanted is what a job says of its outputs, and whose it is.
type Wanted struct {
	User    string
	Outputs jobspec.Outputs
}

// Config of a loop.
type Config struct {
	Store     *store.Store
	Results   *results.Book
	State     State
	Transfers transfer.Puller
	// WantedOf returns what an attempt's job wants. Errors: ErrUnwanted, else it cannot be said now.
	WantedOf func(ref command.AttemptRef) (Wanted, error)
	// Say tells the federation what became of outputs; done is called with what it answers, and does not wait.
	Say func(list []command.Delivered, done func(command.Code))
	// Full returns why so many bytes more may not be written now, or nil.
	Full func(bytes int64) error
	// Wait is how long outputs are waited for whose site is away.
	Wait time.Duration
	// Pins begins the names of the loop's pins in the store: no other loop has it.
	Pins   string
	Pace   Pace
	Logger zerolog.Logger
}

// ErrUnwanted reports outputs that nobody wants.
var ErrUnwanted = errors.New("nobody wants them any more")

// Pace bounds what a loop does at a time.
type Pace struct {
	Batch       int // deliveries that are fetched together
	SiteWorkers int // batches of one site: of two, one large one does not hold up all others
	Workers     int // batches of all sites
}

// Prompt is the pace of what tasks wait for, Idle of what nothing waits for.
var (
	Prompt = Pace{Batch: 256, SiteWorkers: 2, Workers: 16}
	Idle   = Pace{Batch: 32, SiteWorkers: 1, Workers: 2}
)

// Loop fetches what is delivered to this site.
type Loop struct {
	cfg     Config
	workers chan struct{} // a token for each batch that is fetched
	wg      sync.WaitGroup
	began   int64 // log time of its start: before, nobody waited
	bytes   atomic.Int64

	mu    sync.Mutex
	all   map[command.AttemptRef]*delivery
	sites map[string]*site
	full  bool        // the disk or the quota had no room, and nothing was kept since
	ended bool        // Run waits for its goroutines: none begins
	left  []store.Ref // begun of deliveries that were dropped
}

// delivery is one task's outputs.
type delivery struct {
	fsm.Delivery
	ctx context.Context //nolint:containedctx // ends when nobody wants them any more
	end context.CancelFunc
	// movedMs is the log time at which something of it came last, or it began.
	movedMs atomic.Int64

	// The rest is guarded by Loop.mu.
	said    bool // the federation is being told
	due     time.Time
	tries   int
	strikes int    // how often its site sent something else
	why     string // what it waits for, "" = nothing is known
	// begun are the blobs of it that were fetched in pieces: what is there of one goes once it is dropped.
	begun   []store.Ref
	dropped bool
}

// New returns a loop, for Run.
func New(cfg Config) *Loop {
	return &Loop{
		cfg: cfg, workers: make(chan struct{}, cfg.Pace.Workers),
		all: map[command.AttemptRef]*delivery{}, sites: map[string]*site{},
	}
}

// Run fetches until ctx ends. It is called once.
func (l *Loop) Run(ctx context.Context) {
	defer l.end()
	l.began = l.cfg.State.Now()
	for seen := uint64(0); ; {
		changed, whole, now := l.cfg.State.Since(seen)
		l.take(ctx, changed, whole)
		l.clear()
		seen = now
		if l.cfg.State.Await(ctx, seen) != nil {
			return
		}
	}
}

// end waits for what Run has begun.
func (l *Loop) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.wg.Wait()
}

// take notes what the state says. What it does not name any more, if it names all, is fetched no further.
func (l *Loop) take(ctx context.Context, changed []fsm.Delivery, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	named := make(map[command.AttemptRef]bool, len(changed))
	for i := range changed {
		ref := changed[i].AttemptRef
		if named[ref] = true; l.all[ref] == nil {
			l.add(ctx, changed[i])
		}
	}
	for ref, d := range l.all {
		if whole && !named[ref] && !d.said {
			l.drop(d)
		}
	}
}

// add begins a delivery. REQUIRES: l.mu held.
func (l *Loop) add(ctx context.Context, of fsm.Delivery) {
	d := &delivery{Delivery: of}
	d.ctx, d.end = context.WithCancel(ctx)
	d.movedMs.Store(max(of.SinceMs, l.began))
	l.all[of.AttemptRef] = d
	l.queue(ctx, d)
}

// drop ends a delivery. REQUIRES: l.mu held.
func (l *Loop) drop(d *delivery) {
	d.end()
	d.dropped = true
	l.left = append(l.left, d.begun...)
	delete(l.all, d.AttemptRef)
	l.cfg.Store.Unpin(l.pinOf(d))
}

// clear removes what came in part of deliveries that were dropped. One that is being fetched at the moment is held, and
// goes when that ends.
func (l *Loop) clear() {
	l.mu.Lock()
	left := l.left
	l.left = nil
	l.mu.Unlock()
	if err := l.cfg.Store.Abandon(left...); err != nil {
		l.cfg.Logger.Warn().Err(err).Msg("parts of outputs that nobody wants any more are left until their time is over")
	}
}

// moved notes that something of a delivery has come.
func (l *Loop) moved(d *delivery, bytes int) {
	l.bytes.Add(int64(bytes))
	d.movedMs.Store(l.cfg.State.Now())
}
