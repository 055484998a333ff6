package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/bounds"
	"github.com/cloudshare/cloudshare/node/estimate"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/replica"
)

// Config is what a broker is made of. The caller opens the parts and closes
// Log and Journal after Stop.
type Config struct {
	Site     string
	Node     [16]byte // identity of the data directory, from Journal.Identify
	Version  string   // of the program, for people
	Exposure node.Exposure
	// Disk is the file system of the data directory.
	Disk node.Disk
	// KillGrace between TERM and KILL of a task; 0 = 1 s.
	KillGrace time.Duration
	// Hints of gossip, nil = none.
	Hints Hints
	// Registered, if set, is called with each new incarnation; it must not block.
	Registered func(incarnation uint64)
	Journal    *record.Journal
	Replica    *replica.Replica
	Log        coord.Log
	Handlers   []executor.Handler
	// Outputs tells what is kept of the output of ended attempts, nil = nobody keeps any.
	Outputs func() executor.OutputStats
	// Terms of the handlers, by their names.
	Terms map[string]node.Terms
	// Genesis founds the federation if nobody has; only the first one counts.
	Genesis fsm.Genesis
	Logger  zerolog.Logger
}

// Addresses are those under which other brokers reach this one, host:port.
type Addresses struct {
	HTTP, Peer string
	Gossip     string // "" = none
}

// Validate names the first thing that is wrong.
func (c *Config) Validate() error {
	switch {
	case !fsm.ValidSite(c.Site):
		return fmt.Errorf("site %q: must be a lower-case DNS label, e.g. site-1", c.Site)
	case c.Journal == nil || c.Replica == nil || c.Log == nil:
		return errors.New("a broker needs a journal, a replica and a log")
	}
	for name, t := range c.Terms {
		if err := t.Validate(); err != nil {
			return fmt.Errorf("handler %s: %w", name, err)
		}
	}
	return errors.Join(c.Exposure.Validate(), c.Disk.Validate())
}

// Broker is one site's daemon: the shell around [core].
type Broker struct {
	cfg    Config
	events chan core.Event
	ctx    context.Context //nolint:containedctx // the life of the broker's goroutines
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	core   *core.Core // owned by the loop's goroutine
	// commits are turns whose records are to be synced; unsynced is commitLoop's.
	// behind are turns that commits has no room for yet, oldest first; the loop's.
	commits  chan *core.Effects
	unsynced []record.Write
	behind   []*core.Effects
	synced   chan struct{} // a publication's records are synced

	handlers      map[string]executor.Handler
	startProgress startProgress
	forgets       chan core.HandlerID
	leases        *leaseTracker
	fitness       fitness
	disk          *diskWatch
	stall         atomic.Pointer[error] // of the journal, as the last look found it
	renewNow      chan struct{}         // capacity 1
	leaseUntil    atomic.Int64          // CLOCK_BOOTTIME, as last granted
	confirmed     atomic.Int64          // see Freshness.Confirmed
	epoch         atomic.Uint64         // of the state that this site is ready for, or gets ready for
	addresses     Addresses             // set by Start
	created       time.Time

	mu         sync.Mutex
	registered uint64        // incarnation, 0 = not yet
	current    chan struct{} // closed once registered since the start
	failure    error
	failed     chan struct{}
	stopping   bool
	leaving    bool
	hurried    bool
	hurry      chan struct{} // closed by the first leave with now
	left       chan struct{} // closed once the site has left
	metrics    counters
	estimates  *estimate.Estimator
	// estimatesPath is where they are kept, "" = nowhere.
	estimatesPath string
}

// New checks the configuration and returns a broker that has not started.
func New(cfg Config) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure broker: %w", err)
	}
	if cfg.KillGrace == 0 {
		cfg.KillGrace = time.Second
	}
	if cfg.Hints == nil {
		cfg.Hints = noHints{}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	b := &Broker{
		cfg: cfg, ctx: ctx, cancel: cancel,
		events:   make(chan core.Event, 1024),
		commits:  make(chan *core.Effects, maxGroup),
		synced:   make(chan struct{}, 1),
		forgets:  make(chan core.HandlerID, 4096),
		failed:   make(chan struct{}),
		left:     make(chan struct{}),
		hurry:    make(chan struct{}),
		current:  make(chan struct{}),
		handlers: map[string]executor.Handler{},
		leases:   newLeaseTracker(time.Now, cfg.Replica.SiteState),
		disk:     newDiskWatch(cfg.Disk),
		renewNow: make(chan struct{}, 1),
		core:     core.New(cfg.Site, cfg.Exposure),
		created:  time.Now(),

		estimates: estimate.NewEstimator(),
	}
	replica.ForkSite(cfg.Site)
	b.core.SetEmit(cfg.Replica.Feed().AddHome)
	for _, h := range cfg.Handlers {
		name := h.Name()
		t := cfg.Terms[name]
		labels, err := t.LabelsAt(name, cfg.Site)
		if err != nil {
			return nil, fmt.Errorf("configure broker: labels of handler %s: %w", name, err)
		}
		b.handlers[name] = h
		b.core.AddHandler(name, bounds.GuardOf(h), core.Terms{Labels: labels, Tasks: t.Tasks})
	}
	return b, nil
}

// Start adopts what earlier lives of the broker left, and begins to work. It
// does not wait for the federation: Ready tells when it was found.
func (b *Broker) Start(ctx context.Context, addresses Addresses) error {
	found := map[string][]executor.State{}
	for name, h := range b.handlers {
		states, err := h.Adopt(ctx)
		if err != nil {
			return fmt.Errorf("adopt attempts of handler %s: %w", name, err)
		}
		found[name] = states
	}
	fx := &core.Effects{}
	b.core.SetClock(readClock())
	for name, h := range b.handlers {
		b.core.Capacity(core.CapacityEvent{Handler: name, Machines: h.Capacity()})
	}
	if err := b.core.Recover(b.cfg.Journal, found, fx); err != nil {
		return fmt.Errorf("recover from the journal: %w", err)
	}
	held, lost := b.core.Registration()
	if len(held)+len(lost) > 0 {
		b.cfg.Logger.Info().Int("adopted", len(held)).Int("lost", len(lost)).Msg("attempts of the previous run settled")
	}
	if err := b.cfg.Journal.Commit(fx.Writes); err != nil {
		return err
	}
	fx.Writes = nil
	b.disk.report(b.diskChanged) // before the first job comes
	b.goroutine(b.watchDisk)
	b.goroutine(b.watchJournal)
	b.goroutine(b.forgetLoop)
	b.goroutine(b.commitLoop)
	b.goroutine(b.loop)
	b.performNow(fx)
	b.perform(fx)
	for _, h := range b.handlers {
		b.goroutine(func() { b.listen(h) })
	}
	b.addresses = addresses
	epoch, err := b.cfg.Journal.Epoch()
	if err != nil {
		return err
	}
	b.epoch.Store(epoch)
	b.cfg.Log.Grant(b.leases)
	b.goroutine(func() { b.register(held, lost) })
	b.goroutine(b.renewLoop)
	b.goroutine(b.watchLoop)
	b.goroutine(b.watchLog)
	b.goroutine(b.estimateLoop)
	b.goroutine(b.keepDates)
	return nil
}

func (b *Broker) goroutine(f func()) {
	b.wg.Add(1)
	go func() {
		defer b.wg.Done()
		f()
	}()
}

// register founds the federation if nobody has, and presents this broker. The
// log retries inside, so it returns early only when the broker stops.
func (b *Broker) register(held, lost []fsm.AttemptRef) {
	b.setIncarnation(0)
	if err := b.found(); err != nil {
		b.endUnless(fmt.Errorf("found the federation: %w", err))
		return
	}
	if b.newEpoch() {
		return
	}
	if err := node.TimingOf(b.Params(), b.cfg.KillGrace).Validate(); err != nil {
		b.fail(fmt.Errorf("the federation's timing and this site's do not fit: %w", err))
		return
	}
	boot := uuid.New()
	known, err := b.cfg.Journal.Boot(boot)
	if err != nil {
		b.endUnless(err)
		return
	}
	cmd := fsm.Command{ID: fsm.CommandID{Site: b.cfg.Site}, Body: &fsm.Register{
		Node: b.cfg.Node, Boot: boot, Known: known, HTTP: b.addresses.HTTP, Peer: b.addresses.Peer, Gossip: b.addresses.Gossip,
		MaxVersion: fsm.Version, Held: held, Lost: lost,
	}}
	results, err := b.cfg.Log.Propose(b.ctx, cmd)
	if err != nil {
		b.endUnless(fmt.Errorf("register site %s: %w", b.cfg.Site, err))
		return
	}
	if r := results[0]; r.Code != fsm.OK {
		b.fail(fmt.Errorf("register site %s: refused: %s", b.cfg.Site, r.Code))
		return
	}
	b.post(core.RegisteredEvent{Result: results[0], Boot: boot})
	b.setIncarnation(results[0].Incarnation)
	if b.cfg.Registered != nil {
		b.cfg.Registered(results[0].Incarnation)
	}
	select {
	case b.renewNow <- struct{}{}:
	default:
	}
	b.cfg.Logger.Info().Uint64("incarnation", results[0].Incarnation).Msg("registered with the federation")
}

func (b *Broker) setIncarnation(n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.registered = n
	if n > 0 && b.Current() != nil {
		close(b.current)
	}
}

// incarnation returns 0 while this broker is not registered.
func (b *Broker) incarnation() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.registered
}

// endUnless fails the broker with err unless it is being stopped anyway.
func (b *Broker) endUnless(err error) {
	if b.ctx.Err() == nil {
		b.fail(err)
	}
}

// found proposes Genesis if a current look at the state shows none.
func (b *Broker) found() error {
	if err := b.catchUp(); err != nil || b.founded() {
		return err
	}
	cmd := fsm.Command{ID: fsm.CommandID{Site: b.cfg.Site}, Body: &b.cfg.Genesis}
	_, err := b.cfg.Log.Propose(b.ctx, cmd)
	return err
}

// catchUp reads the state as it is now, however long it takes to find a leader.
func (b *Broker) catchUp() error {
	for {
		sent := executor.Boottime()
		_, err := b.cfg.Log.Sync(b.ctx)
		if err == nil {
			b.confirm(sent)
			return nil
		}
		if b.ctx.Err() != nil {
			return err
		}
		b.cfg.Logger.Debug().Err(err).Msg("the federation does not answer yet")
		select {
		case <-time.After(core.TickEvery):
		case <-b.cfg.Log.Failed():
			return b.cfg.Log.Err()
		case <-b.ctx.Done():
			return context.Cause(b.ctx)
		}
	}
}

func (b *Broker) founded() (yes bool) {
	b.cfg.Replica.View(func(s *fsm.State) { yes = s.Federation() != [16]byte{} })
	return yes
}

// watchLog fails the broker when its coordination backend stopped by itself.
func (b *Broker) watchLog() {
	select {
	case <-b.cfg.Log.Failed():
		b.fail(fmt.Errorf("coordination stopped: %w", b.cfg.Log.Err()))
	case <-b.ctx.Done():
	}
}

// fail stops the broker for good; Failed is closed and Err says why.
func (b *Broker) fail(err error) {
	err = b.disk.remedy(err)
	b.mu.Lock()
	first := b.failure == nil
	if first {
		b.failure = err
		close(b.failed)
	}
	b.mu.Unlock()
	if first {
		b.cfg.Logger.Error().Err(err).Msg("broker stops")
		b.cancel(err)
	}
}

// Failed is closed when the broker stopped by itself.
func (b *Broker) Failed() <-chan struct{} { return b.failed }

// Err says why it failed, nil while it works.
func (b *Broker) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failure
}

// Stop ends the broker: idempotent. With endTasks it first ends everything that
// runs on this site's machines; without, supervisors keep it for the next start.
func (b *Broker) Stop(ctx context.Context, endTasks bool) error {
	b.mu.Lock()
	again := b.stopping
	b.stopping = true
	b.mu.Unlock()
	if again {
		return b.join()
	}
	var errs []error
	if endTasks {
		_ = b.query(ctx, (*core.Core).Close) // ends with the broker
		b.drainOut(ctx, (*core.Core).Withdrawn)
		for name, h := range b.handlers {
			if err := h.End(ctx); err != nil {
				errs = append(errs, fmt.Errorf("end tasks of handler %s: %w", name, err))
			}
		}
		b.drainOut(ctx, (*core.Core).Idle)
	}
	b.cancel(node.ErrStopping)
	for name, h := range b.handlers {
		if err := h.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close handler %s: %w", name, err))
		}
	}
	return errors.Join(append(errs, b.join())...)
}

// drainOut waits a moment for the order to take what the broker still has to say.
func (b *Broker) drainOut(ctx context.Context, done func(*core.Core) bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	b.until(ctx, done)
}

// processBegan is read by its monotonic clock only.
var processBegan = time.Now()

// readClock reads the clocks for a turn of the loop.
func readClock() core.Clock {
	return core.Clock{Wall: wallClock(), Boot: executor.Boottime(), Up: time.Since(processBegan)}
}
