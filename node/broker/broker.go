package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/diskspace"
	"github.com/cloudshare/cloudshare/node/broker/homelogs"
	"github.com/cloudshare/cloudshare/node/broker/leases"
	"github.com/cloudshare/cloudshare/node/broker/query"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/bounds"
	"github.com/cloudshare/cloudshare/node/estimate"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/notices"
	"github.com/cloudshare/cloudshare/node/plausible"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/replica"
	"github.com/cloudshare/cloudshare/node/seal"
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
	// Refused returns how the other members refuse this site, "" = they do not. It may be nil, and must not block.
	Refused func() string
	// DropSecrets is told which secrets that jobs are sealed with are needed, the one of now first, when some are not:
	// those are to be forgotten. It may be nil.
	DropSecrets func(used []bool) error
	Journal     *record.Journal
	Replica     *replica.Replica
	Log         coord.Log
	// Far: members are up to some hundred milliseconds apart (profile wan).
	Far      bool
	Handlers []executor.Handler
	// Outputs tells what is kept of the output of ended attempts, nil = nobody keeps any.
	Outputs func() executor.OutputStats
	// Terms of the handlers, by their names.
	Terms map[string]node.Terms
	// UserLimits are the quotas of users and of node.EveryUser that the configuration gives. What was set by command
	// outweighs them.
	UserLimits map[string]node.UserLimits
	// UserHalfLife is after how long half of the users' use is forgotten; 0 = node.UserHalfLife.
	UserHalfLife time.Duration
	// Genesis founds the federation if nobody has; only the first one counts. Its id is that of the federation in any
	// case.
	Genesis command.Genesis
	// AskKeys reaches other sites' brokers, nil = it does not: then nothing of theirs is run.
	AskKeys AskKeys
	// Files keeps the files that travel with tasks, nil = none do: jobs with files are refused, and none runs here.
	Files *store.Store
	// Transfers bring them from other sites.
	Transfers transfer.Puller
	// Home says how what own tasks have written at other sites comes home, nil = it does not.
	Home *homelogs.Config
	// DialProgress connects to a site's broker to ask what it does before own tasks start there; nil: nobody is asked.
	DialProgress func(ctx context.Context, site, addr string) (net.Conn, error)
	// Reach returns nil if something takes connections at a peer address; nil: sites in doubt are not dialed, and
	// suspected by their leases alone.
	Reach func(ctx context.Context, addr string) error
	Data  node.DataTerms
	// Roots are the folders that files of jobs may be written to now.
	Roots exports.Roots
	// Notify says who may be told that jobs have ended; the zero value: nobody.
	Notify notices.Config
	Logger zerolog.Logger
}

// Addresses are those under which other brokers reach this one, host:port.
type Addresses struct {
	HTTP, Peer string
	Gossip     string // "" = none
}

// Validate names the first thing that is wrong.
func (c *Config) Validate() error {
	switch {
	case !command.ValidSite(c.Site):
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

// Broker is one site's daemon: the shell around [core]. Each concern that has state of its
// own is a type of its own; the broker starts them and composes what they know.
type Broker struct {
	*process
	*query.Reader
	*departure
	*keyKeeper
	secrets *secretKeeper
	cfg     Config
	core    *core.Core // owned by the loop's goroutine

	committer  *committer
	proposer   *proposer
	runner     *runner
	moved      *countedTransfers
	files      *fileMover // nil: no files travel with tasks
	owned      *ownFiles  // of this site's own jobs; nil likewise
	notify     *notifier
	exporter   *exporter
	registrar  *registrar
	contact    *contact
	watch      *leaderWatch
	disk       *diskspace.Watch
	crowding   *crowding
	journal    *journalWatch
	estimates  *estimateKeeper
	ends       *endWatch
	home       *homelogs.Puller // nil = nothing comes home
	logTime    logTime
	recovered  atomic.Bool   // it knows what its earlier lives have left; before, it gives other sites nothing
	losses     atomic.Uint64 // unjust ones, see judgeLoss
	leaseUntil atomic.Int64  // CLOCK_BOOTTIME, as last granted
	created    time.Time

	stopMu   sync.Mutex
	stopping bool
}

// UserOf returns the user of a job of this site by its number, "" if it is the site's own.
func (b *Broker) UserOf(num uint64) string { return b.core.Whose().UserOf(num) }

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
	secrets, err := cfg.Journal.Secrets()
	if err != nil {
		return nil, fmt.Errorf("configure broker: %w", err)
	}
	sealer := sealerOf(secrets, seal.Whose{Federation: cfg.Genesis.Federation, Site: cfg.Site})
	b := &Broker{
		cfg: cfg, core: core.New(sealer, cfg.Exposure), contact: &contact{},
		disk: diskspace.New(cfg.Disk), created: time.Now(),
	}
	b.compose(sealer)
	if b.owned, err = newOwnFiles(b, sealer); err != nil {
		return nil, fmt.Errorf("configure broker: %w", err)
	}
	if err = b.bringHome(); err != nil {
		return nil, fmt.Errorf("configure broker: %w", err)
	}
	if b.notify, err = newNotifier(b); err != nil {
		return nil, fmt.Errorf("configure broker: notices: %w", err)
	}
	if b.exporter, err = newExporter(b); err != nil {
		return nil, fmt.Errorf("configure broker: %w", err)
	}
	replica.ForkSite(cfg.Site)
	if cfg.Files != nil {
		b.disk.Relieve = b.relieveDisk
	}
	b.core.ConfigureUsers(cfg.UserLimits, cfg.UserHalfLife)
	b.core.SetEmit(cfg.Replica.Feed().AddHome)
	if b.owned != nil {
		b.core.LendFiles(cfg.Data.LendMax)
	}
	for _, h := range cfg.Handlers {
		name := h.Name()
		t := cfg.Terms[name]
		labels, err := t.LabelsAt(name, cfg.Site)
		if err != nil {
			return nil, fmt.Errorf("configure broker: labels of handler %s: %w", name, err)
		}
		b.runner.handlers[name] = h
		_, collects := h.(executor.Collector)
		b.core.AddHandler(name, bounds.GuardOf(h), core.Terms{
			Labels: labels, Tasks: t.Tasks, Site: cfg.Site, Collects: collects,
		})
	}
	return b, nil
}

// compose makes the broker's parts.
func (b *Broker) compose(sealer *seal.Sealer) {
	cfg, p := &b.cfg, newProcess(b.cfg.Logger, b.disk.Remedy)
	b.process = p
	b.committer = newCommitter(p, cfg.Journal)
	b.committer.perform = b.perform
	b.proposer = &proposer{process: p, order: cfg.Log}
	b.runner = newRunner(p)
	b.crowding = &crowding{process: p, disk: b.disk, handlers: b.runner.handlers, rest: endsWithin}
	b.registrar = newRegistrar(p, cfg, b.contact)
	b.keyKeeper = &keyKeeper{
		process: p, sealer: sealer, replica: cfg.Replica, askKeys: cfg.AskKeys,
	}
	b.secrets = &secretKeeper{b: b, sealer: sealer}
	b.moved = &countedTransfers{of: cfg.Transfers}
	b.files = newFileMover(b)
	b.runner.files = b.files
	b.departure = newDeparture(p, cfg, b.runner.handlers, b.files.endAll)
	b.watch = &leaderWatch{
		process: p, site: cfg.Site, order: cfg.Log, replica: cfg.Replica, hints: cfg.Hints, reach: cfg.Reach,
		outside: b.registrar.outside,
		leases:  leases.NewTracker(time.Now, cfg.Replica.SiteState),
	}
	b.journal = &journalWatch{process: p, journal: cfg.Journal}
	estimates, watch := estimate.NewEstimator(), plausible.New()
	var home query.HomeStore
	if cfg.Home != nil {
		home = cfg.Home.Store
	}
	b.Reader = query.New(query.Sources{
		Site: cfg.Site, Replica: cfg.Replica, Sealer: sealer, Log: cfg.Log, Handlers: cfg.Handlers, Query: p.query,
		Home:     home,
		Progress: &b.runner.progress, DialProgress: cfg.DialProgress,
		Delivery:  b.deliveryWhy,
		Leftover:  b.leftoverAway,
		Estimates: estimates, Plausible: watch,
		Ctx: p.ctx, Current: b.registrar.current, Freshness: b.Freshness, Full: b.disk.Full,
	})
	b.estimates = &estimateKeeper{
		process: p, replica: cfg.Replica, estimates: estimates, plausible: watch,
		current: b.registrar.current, subscribe: b.Events,
	}
	b.ends = &endWatch{process: p, site: cfg.Site, feed: cfg.Replica.Feed(), subscribe: b.Events}
}

// Start adopts what earlier lives of the broker left, and begins to work. It
// does not wait for the federation: Ready tells when it was found.
func (b *Broker) Start(ctx context.Context, addresses Addresses) error {
	found := map[string][]executor.State{}
	for name, h := range b.runner.handlers {
		states, err := h.Adopt(ctx)
		if err != nil {
			return fmt.Errorf("adopt attempts of handler %s: %w", name, err)
		}
		found[name] = states
	}
	fx := &core.Effects{}
	b.core.SetClock(readClock())
	for name, h := range b.runner.handlers {
		b.core.Capacity(core.CapacityEvent{Handler: name, Machines: h.Capacity()})
	}
	if err := b.core.Recover(b.cfg.Journal, found, fx); err != nil {
		return fmt.Errorf("recover from the journal: %w", err)
	}
	if err := b.recoverFiles(); err != nil {
		return err
	}
	b.recovered.Store(true)
	held, lost := b.core.Registration()
	if len(held)+len(lost) > 0 {
		b.cfg.Logger.Info().Int("adopted", len(held)).Int("lost", len(lost)).Msg("attempts of the previous run settled")
	}
	if err := b.cfg.Journal.Commit(fx.Writes); err != nil {
		return err
	}
	fx.Writes = nil
	b.disk.Report(b.diskChanged) // before the first job comes
	b.goroutine(b.watchDisk)
	b.goroutine(b.crowding.run)
	b.goroutine(b.watchUnsure)
	b.goroutine(b.journal.run)
	b.goroutine(b.runner.forgetLoop)
	if b.files != nil {
		b.goroutine(func() { b.files.outgoing.Run(b.ctx) })
		b.goroutine(b.files.room.run)
	}
	b.goroutine(b.committer.commitLoop)
	b.goroutine(b.loop)
	b.performNow(fx)
	b.perform(fx)
	for _, h := range b.runner.handlers {
		b.goroutine(func() { b.runner.listen(h) })
	}
	b.registrar.addresses = addresses
	epoch, err := b.cfg.Journal.Epoch()
	if err != nil {
		return err
	}
	b.registrar.epoch.Store(epoch)
	b.cfg.Log.Grant(b.watch.leases)
	b.goroutine(func() { b.registrar.register(held, lost) })
	b.goroutine(b.registrar.watchStanding)
	b.goroutine(b.renewLoop)
	b.goroutine(b.watch.run)
	b.goroutine(b.secrets.run)
	b.goroutine(b.watchLog)
	b.goroutine(b.estimates.run)
	b.goroutine(b.ends.run)
	b.goroutine(b.keepDates)
	b.owned.start()
	b.notify.start()
	b.exporter.start()
	if b.home != nil {
		b.goroutine(func() { b.home.Run(b.ctx) })
	}
	return nil
}

// watchLog fails the broker when its coordination backend stopped by itself.
func (b *Broker) watchLog() {
	select {
	case <-b.cfg.Log.Failed():
		b.fail(fmt.Errorf("coordination stopped: %w", b.cfg.Log.Err()))
	case <-b.ctx.Done():
	}
}

// Stop ends the broker: idempotent. With endTasks it first ends everything that
// runs on this site's machines; without, supervisors keep it for the next start.
func (b *Broker) Stop(ctx context.Context, endTasks bool) error {
	b.stopMu.Lock()
	again := b.stopping
	b.stopping = true
	b.stopMu.Unlock()
	if again {
		return b.join()
	}
	var errs []error
	if endTasks {
		_ = b.query(ctx, (*core.Core).Close) // ends with the broker
		b.drainOut(ctx, (*core.Core).Withdrawn)
		b.files.endAll()
		for name, h := range b.runner.handlers {
			if err := h.End(ctx); err != nil {
				errs = append(errs, fmt.Errorf("end tasks of handler %s: %w", name, err))
			}
		}
		b.drainOut(ctx, (*core.Core).Idle)
	}
	b.cancel(node.ErrStopping)
	for name, h := range b.runner.handlers {
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
