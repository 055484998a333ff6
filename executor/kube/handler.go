package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// Handler runs tasks as Jobs. See the contract, [executor.Handler].
type Handler struct {
	cfg  Config
	lock *os.File
	id   string // of Dir: which Jobs are ours, and not another broker's in the namespace
	life *life

	// What the parts share.
	api     *api
	folders attempts.Folders
	works   *workSet

	// The parts: each has the fields that it needs, and holds parts above it only. What goes
	// the other way is a function.
	decoder    *decoder     // objects → views
	specs      *jobBuilder  // attempts → Jobs
	view       *clusterView // what the watches show
	reach      *reach       // whether the API server serves us
	offer      *offer       // machines, and the room on them
	leases     *leases      // watched attempts
	output     *taskOutput  // what tasks write
	client     *jobClient   // calls for one attempt's Job
	finisher   *finisher    // ends, and what is removed behind them
	starter    *starter     // Start
	reconciler *reconciler  // Jobs, one at a time: what is, and what is wanted
}

// life is that of the handler's goroutines: they end with ctx, and Close waits for them.
type life struct {
	sync.WaitGroup
	ctx    context.Context //nolint:containedctx // see above
	cancel context.CancelFunc
}

func newLife() *life {
	l := &life{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

var (
	_ executor.Handler = (*Handler)(nil)
	_ executor.Bounded = (*Handler)(nil)
	_ executor.Finder  = (*Handler)(nil)

	_ executor.OutputHistory = (*Handler)(nil)
)

// workers that look at Jobs.
const workers = 16

// Open takes the directory and reads the credentials. The cluster need not answer.
// Nothing runs before Adopt.
func Open(cfg Config) (*Handler, error) {
	if cfg.Watchdog != (Watchdog{}) {
		return nil, errors.New("kube: watchdog: OpenWatched is for that")
	}
	return open(cfg)
}

func open(cfg Config) (*Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var err error
	cfg = cfg.withDefaults()
	if cfg.Keeping, err = cfg.Keeping.WithDefaults(); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	h := &Handler{cfg: cfg}
	if h.api, err = dial(cfg); err == nil {
		err = h.takeDir()
	}
	if err != nil {
		return nil, fmt.Errorf("open kube handler at %s: %w", cfg.Dir, err)
	}
	h.life, h.works = newLife(), newWorkSet(h.id, h.folders)
	h.addBuilders()
	h.addViews()
	h.addWorkers()
	if h.works.attempts, err = attempts.NewSet[*work](&h.works.mu, cfg.Keeping, func(attempts.Hold) {},
		attempts.Shelf{Output: h.folders.Output, Drop: h.evict}); err != nil {
		h.life.cancel()
		return nil, fmt.Errorf("open kube handler at %s: %w", cfg.Dir, errors.Join(err, h.leases.close(), h.lock.Close()))
	}
	return h, nil
}

// addBuilders makes the parts that read and write Kubernetes' objects.
func (h *Handler) addBuilders() {
	choice := newNodeChoice(h.cfg)
	h.decoder = &decoder{cfg: &h.cfg, home: h.id, namespace: h.api.namespace, choice: choice}
	h.specs = &jobBuilder{cfg: &h.cfg, home: h.id, namespace: h.api.namespace, choice: choice, key: h.leases.key}
}

// addViews makes the parts that know the cluster.
func (h *Handler) addViews() {
	h.offer = &offer{
		log: h.cfg.Logger, threshold: h.cfg.Threshold, foreign: h.cfg.Foreign, works: h.works,
		dirty: make(chan struct{}, 1), held: map[string]executor.Resources{},
	}
	h.view = newClusterView(h.api, h.decoder, h.cfg.Dedicated, h.works, h.offer.changed)
	h.reach = &reach{
		api: h.api, life: h.life, log: h.cfg.Logger, works: h.works, isSynced: h.view.isSynced,
		withdraw: h.offer.withdraw, changed: h.offer.changed, trouble: map[string]error{}, looked: make(chan struct{}),
	}
	h.leases.works, h.leases.nodes = h.works, h.view.nodes
	if h.leases.carrier != nil {
		h.leases.carrier.works = h.works
	}
	h.offer.view, h.offer.reach = h.view, h.reach
}

// addWorkers makes the parts that attend to attempts.
func (h *Handler) addWorkers() {
	h.output = &taskOutput{
		cfg: &h.cfg, log: h.cfg.Logger, life: h.life, works: h.works, view: h.view, logs: &podLogs{api: h.api},
	}
	h.client = &jobClient{cfg: &h.cfg, api: h.api, works: h.works, specs: h.specs, reach: h.reach}
	h.finisher = &finisher{
		api: h.api, log: h.cfg.Logger, works: h.works, leases: h.leases, offer: h.offer, reach: h.reach,
	}
	h.starter = &starter{
		cfg: &h.cfg, life: h.life, works: h.works, view: h.view, leases: h.leases, offer: h.offer, reach: h.reach,
		client: h.client, finisher: h.finisher,
	}
	h.reconciler = &reconciler{
		cfg: &h.cfg, api: h.api, life: h.life, works: h.works, specs: h.specs, view: h.view, leases: h.leases,
		reach: h.reach, client: h.client, output: h.output, finisher: h.finisher,
	}
}

func (h *Handler) takeDir() (err error) {
	if h.folders, err = attempts.OpenFolders(h.cfg.Keeping); err != nil {
		return err
	}
	if h.lock, err = attempts.Lock(h.cfg.Dir); err != nil {
		return err
	}
	if h.id, err = attempts.Identity(h.cfg.Dir); err == nil {
		h.leases, err = openLeases(h.cfg)
	}
	if err != nil {
		h.lock.Close()
	}
	return err
}

// listen starts to watch the cluster and to look at Jobs.
func (h *Handler) listen() {
	jobs, pods, nodes := h.view.sources()
	for _, f := range []func(){
		func() { keepCurrent(h.life.ctx, jobs, h.view.jobs, h.api.codec, h.reach.heard) },
		func() { keepCurrent(h.life.ctx, pods, h.view.pods, h.api.codec, h.reach.heard) },
		func() { keepCurrent(h.life.ctx, nodes, h.view.nodes, h.api.codec, h.reach.heard) },
		h.awaitFirst,
		func() { h.leases.lapseEach(h.life.ctx) },
		func() { h.offer.run(h.life.ctx) },
		func() { h.folders.Run(h.life.ctx.Done()) },
	} {
		h.life.Go(f)
	}
	for range workers {
		h.life.Go(h.reconciler.run)
	}
	if h.leases.isListening() {
		h.life.Go(h.leases.serve)
	}
}

// awaitFirst has everything looked at once all of it is known.
func (h *Handler) awaitFirst() {
	for _, synced := range []<-chan struct{}{h.view.jobs.synced, h.view.pods.synced, h.view.nodes.synced} {
		select {
		case <-synced:
		case <-h.life.ctx.Done():
			return
		}
	}
	h.works.mu.Lock()
	for job := range h.works.byJob {
		h.works.queue.Add(job)
	}
	h.works.mu.Unlock()
	for _, j := range h.view.jobs.all() {
		h.works.queue.Add(j.name)
	}
	h.offer.measure()
	h.works.mu.Lock()
	close1(h.reach.looked)
	h.works.mu.Unlock()
}

// Name implements executor.Handler.
func (h *Handler) Name() string { return "kube" }

// Status implements executor.Handler.
func (h *Handler) Status() string {
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	if away := h.reach.away(); away != nil {
		return fmt.Sprintf("nothing in namespace %s of %s: %v", h.api.namespace, h.api.host, away)
	}
	sum, nodes := h.offer.sum()
	return fmt.Sprintf("%d cores, %d MiB on %d nodes, as Jobs in namespace %s of %s; cores and memory are limited by kubelets; other sites' tasks are labelled network %s, which the namespace's NetworkPolicies hold them to", sum.MilliCPU/1000, sum.MemMiB, nodes, h.api.namespace, h.api.host, h.cfg.Foreign)
}

// Capacity implements executor.Handler: nothing while the API is away.
func (h *Handler) Capacity() []executor.Machine { return h.offer.capacity() }

// Published implements executor.Handler; a cluster is asked for no room before
// there is a task for it.
func (h *Handler) Published(executor.Demand) {}

// Logs implements executor.Handler. What runs is read from its node, what has
// ended from its folder.
func (h *Handler) Logs(ctx context.Context, id executor.ID, stream string, follow bool) (io.ReadCloser, error) {
	return h.output.read(ctx, id, stream, follow)
}

// Events implements executor.Handler. The channel is closed by Close.
func (h *Handler) Events() <-chan executor.Event { return h.works.attempts.Events.Out() }

// Close implements executor.Handler. Calls under way are waited for.
func (h *Handler) Close() error {
	h.works.mu.Lock()
	first := h.works.attempts.Shut()
	h.works.mu.Unlock()
	if !first {
		return nil
	}
	h.life.cancel()
	h.works.queue.ShutDown()
	if h.leases.server != nil {
		h.leases.server.Close()
		h.leases.carrier.streams.Wait()
	}
	h.life.Wait()
	h.works.attempts.Close()
	return errors.Join(h.leases.close(), h.lock.Close())
}

// End implements executor.Handler.
func (h *Handler) End(ctx context.Context) error {
	return h.works.attempts.End(ctx, h, (*work).isCleaned, "its Job goes on ending it")
}

// Stop implements executor.Handler.
func (h *Handler) Stop(ctx context.Context, id executor.ID, why string) error {
	return h.works.attempts.Stop(ctx, id, func(w *work) error {
		if w.kill == nil {
			w.kill = &kill{cause: executor.Stopped, why: cmp.Or(why, "the broker asked for it")}
		}
		h.works.queue.Add(w.job)
		return nil
	})
}

// Find implements executor.Finder.
func (h *Handler) Find(job string, task, attempt uint32) (executor.ID, error) {
	return h.works.attempts.Find(job, task, attempt)
}

// FindNewest implements executor.Finder.
func (h *Handler) FindNewest(job string, tasks []uint32) []executor.Newest {
	return h.works.attempts.FindNewest(job, tasks)
}

// RemovedOutput implements executor.OutputHistory.
func (h *Handler) RemovedOutput(job string, task, attempt uint32) (executor.OutputRemoval, bool) {
	return h.works.attempts.RemovedOutput(job, task, attempt)
}

// Forget implements executor.Handler.
func (h *Handler) Forget(_ context.Context, id executor.ID) error {
	var forgotten *work
	err := h.works.attempts.Forget(id, func(w *work) error {
		forgotten = w
		return writeFile(w.dir, endFile, kept{End: *w.Ended, NoOutput: w.NoOutput, Forgotten: true})
	})
	if err == nil && forgotten != nil && forgotten.carried {
		forgotten.dropFiles(false)
	}
	return err
}

// evict drops the last trace of an attempt, once its Job is gone. A Job of it that is
// left is nobody's then, and is removed.
func (h *Handler) evict(k attempts.Kept) bool {
	return h.works.attempts.Evict(k, h.folders, (*work).isCleaned, func(w *work) {
		delete(h.works.byJob, w.job)
		h.works.queue.Add(w.job)
	})
}
