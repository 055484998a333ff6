package container

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Handler runs tasks in containers. See the contract, [executor.Handler].
type Handler struct {
	cfg     Config
	mounts  []engine.Mount
	id      string // of Dir: which containers are ours
	lock    *os.File
	fence   *watchdog.Page
	fenceF  *os.File
	engine  *engine.Client
	events  *books.Queue
	notices *books.Notices
	janitor *books.Janitor
	quit    chan struct{} // closed by Close
	// calls ends a while after quit: what the engine is asked about containers.
	calls  context.Context //nolint:containedctx // the life of the handler's goroutines
	giveUp context.CancelFunc
	life   sync.WaitGroup // of attempts, and of the engine's watch

	mu       sync.Mutex
	adopted  bool
	closing  bool // no new attempts
	closed   bool
	attempts map[string]*work // by name, forgotten ones until retention drops them
	room     *books.Room
	up       chan struct{} // closed as long as the engine answers
	away     error         // why it does not; nil = it does
	info     engine.Info   // of when it last did
	looked   chan struct{} // closed once the engine was asked for the first time
	silent   chan struct{} // capacity 1: a call was not answered
}

// Open takes the directory and puts the first process of containers there. The
// engine need not answer. Nothing runs before Adopt.
func Open(cfg Config) (*Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Handler{
		cfg: cfg, attempts: map[string]*work{}, quit: make(chan struct{}),
		up: make(chan struct{}), looked: make(chan struct{}), silent: make(chan struct{}, 1), away: errors.New("not asked yet"),
		events: books.NewQueue(),
	}
	h.calls, h.giveUp = context.WithCancel(context.Background())
	if h.mounts, err = cfg.mounts(); err == nil {
		if h.engine, err = engine.New(cfg.Engine); err == nil {
			err = h.takeDir()
		}
	}
	if err != nil {
		h.events.Close()
		h.giveUp()
		return nil, fmt.Errorf("open container handler at %s: %w", cfg.Dir, err)
	}
	mem := cfg.MemMiB
	if mem == 0 {
		mem = books.PhysicalMiB()
	}
	h.room = books.NewRoom(machineName, cfg.Cores, mem, cfg.CPUs)
	h.janitor = books.StartJanitor(cfg.Retention, h.evict)
	return h, nil
}

func (h *Handler) takeDir() (err error) {
	// Others must get through to what is mounted only by the engine.
	if err = os.MkdirAll(h.path("attempts"), 0o700); err != nil {
		return err
	}
	if err = errors.Join(os.MkdirAll(h.path("run"), 0o700), os.Chmod(h.path("run"), 0o755)); err != nil {
		return err
	}
	if h.lock, err = os.OpenFile(h.path("lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			h.closeFiles()
		}
	}()
	if err = unix.Flock(int(h.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return books.ErrInUse
	}
	if h.id, err = h.identity(); err != nil {
		return err
	}
	if err = installProgram(h.cfg.Executable, h.path("run", box.Program)); err != nil {
		return err
	}
	if h.fence, h.fenceF, err = watchdog.OpenPage(h.path("run", box.Fence)); err != nil {
		return err
	}
	if err = h.fenceF.Chmod(0o644); err != nil {
		return err
	}
	h.notices, err = books.OpenNotices()
	return err
}

// path is one below Dir.
func (h *Handler) path(parts ...string) string {
	return filepath.Join(append([]string{h.cfg.Dir}, parts...)...)
}

// identity is made once for a directory: two brokers on one engine must not take
// each other's containers for their own, whatever their paths are.
func (h *Handler) identity() (string, error) {
	b, err := os.ReadFile(h.path("id"))
	if id := strings.TrimSpace(string(b)); err == nil && len(id) == 16 && books.ValidName(id) {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	id := rand.Text()
	id = hex.EncodeToString([]byte(id))[:16]
	return id, os.WriteFile(h.path("id"), []byte(id+"\n"), 0o600)
}

func (h *Handler) closeFiles() {
	if h.notices != nil {
		h.notices.Close()
	}
	if h.fence != nil {
		_ = h.fence.Close()
	}
	for _, f := range []*os.File{h.fenceF, h.lock} {
		if f != nil {
			f.Close()
		}
	}
}

// Name implements executor.Handler.
func (h *Handler) Name() string { return "container" }

// Status implements executor.Handler.
func (h *Handler) Status() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away != nil {
		return fmt.Sprintf("no containers: %v", h.away)
	}
	m := h.machine()
	s := fmt.Sprintf("%d cores, %d MiB in containers of engine %s", m.MilliCPU/1000, m.MemMiB, h.info.ServerVersion)
	if h.cfg.CPUs != nil {
		s += ", pinned"
	}
	return s
}

// Capacity implements executor.Handler: nothing while the engine is away.
func (h *Handler) Capacity() []executor.Machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away != nil {
		return nil
	}
	return []executor.Machine{h.machine()}
}

// machine is what was configured, as far as the engine's machine has it.
// REQUIRES: h.mu held.
func (h *Handler) machine() executor.Machine {
	mem := h.info.MemTotal >> 20
	if h.cfg.MemMiB != 0 {
		mem = min(mem, h.cfg.MemMiB)
	}
	return executor.Machine{
		Name: machineName, Runs: executor.RunsImages,
		Resources: executor.Resources{MilliCPU: int64(h.cfg.Cores) * 1000, MemMiB: mem},
	}
}

// Published implements executor.Handler; an engine asks nobody for room.
func (h *Handler) Published(executor.Demand) {}

// Extend implements executor.Extender.
func (h *Handler) Extend(boottime int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("extend fences: %w", books.ErrClosed)
	}
	h.fence.Extend(boottime)
	return nil
}

// Events implements executor.Handler. The channel is closed by Close.
func (h *Handler) Events() <-chan executor.Event { return h.events.Out() }

// closeWait is how long Close waits for an answer of the engine.
const closeWait = 5 * time.Second

// Close implements executor.Handler. A container that is being made is waited
// for, an image that is being fetched is not.
func (h *Handler) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed, h.closing = true, true
	close(h.quit)
	h.mu.Unlock()
	late := time.AfterFunc(closeWait, h.giveUp)
	h.life.Wait()
	late.Stop()
	h.giveUp()
	h.janitor.Close()
	h.events.Close()
	h.engine.Close()
	h.closeFiles()
	return nil
}

// End implements executor.Handler.
func (h *Handler) End(ctx context.Context) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closing = true
	var running []*work
	for _, w := range h.attempts {
		if w.ended == nil {
			running = append(running, w)
		}
	}
	h.mu.Unlock()
	var errs []error
	for _, w := range running {
		errs = append(errs, h.Stop(ctx, w.task.ID, "the broker shuts down"))
	}
	for _, w := range running {
		select {
		case <-w.cleaned:
		case <-ctx.Done():
			return fmt.Errorf("end attempts: %s still runs, its container goes on ending it: %w", w.name, ctx.Err())
		}
	}
	return errors.Join(append(errs, h.Close())...)
}

var (
	_ executor.Handler  = (*Handler)(nil)
	_ executor.Extender = (*Handler)(nil)
	_ executor.Finder   = (*Handler)(nil)
)
