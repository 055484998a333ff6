package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// Handler runs tasks in containers. See the contract, [executor.Handler].
type Handler struct {
	cfg      Config
	template template
	id       string // of Dir: which containers are ours, and not another broker's on the engine
	engine   *engine.Client
	desk     *attempts.Desk
	folders  attempts.Folders
	attempts *attempts.Set[*work]
	// calls ends a while after Close: what the engine is asked about containers.
	calls  context.Context //nolint:containedctx // the life of the handler's goroutines
	giveUp context.CancelFunc
	life   sync.WaitGroup // of attempts, and of the engine's watch

	mu       sync.Mutex // of the attempts, too
	room     *attempts.Room
	presence presence
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
	cpus := cfg.CPUs
	if len(cpus) == 0 {
		cpus = attempts.AllowedCPUs()
	}
	h := &Handler{
		cfg: cfg, room: attempts.NewRoom(machineName, cfg.Cores, cmp.Or(cfg.MemMiB, attempts.PhysicalMiB()), cpus),
	}
	mounts, err := cfg.mounts()
	if err == nil {
		if h.engine, err = engine.New(cfg.Engine); err == nil {
			err = h.takeDir()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open container handler at %s: %w", cfg.Dir, err)
	}
	h.presence = newPresence(findReach(&h.cfg, ""))
	h.template = template{cfg: &h.cfg, home: h.id, run: h.path("run"), mounts: mounts}
	h.calls, h.giveUp = context.WithCancel(context.Background())
	if h.attempts, err = attempts.NewSet[*work](&h.mu, cfg.Keeping, h.room.Release,
		attempts.Shelf{Output: h.folders.Output, Drop: h.evict}); err != nil {
		h.giveUp()
		h.desk.Close()
		return nil, fmt.Errorf("open container handler at %s: %w", cfg.Dir, err)
	}
	return h, nil
}

func (h *Handler) takeDir() (err error) {
	// Others must get through to what is mounted only by the engine.
	if h.folders, err = attempts.OpenFolders(h.cfg.Keeping); err != nil {
		return err
	}
	if err = errors.Join(os.MkdirAll(h.path("run"), 0o700), os.Chmod(h.path("run"), 0o755)); err != nil {
		return err
	}
	if h.desk, err = attempts.OpenDesk(h.cfg.Dir, filepath.Join("run", box.Fence)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			h.desk.Close()
		}
	}()
	if h.id, err = attempts.Identity(h.cfg.Dir); err != nil {
		return err
	}
	if err = installProgram(h.cfg.Executable, h.path("run", box.Program)); err != nil {
		return err
	}
	return h.desk.FenceFile.Chmod(0o644)
}

// path returns one below Dir.
func (h *Handler) path(parts ...string) string {
	return filepath.Join(append([]string{h.cfg.Dir}, parts...)...)
}

// Name implements executor.Handler.
func (h *Handler) Name() string { return "container" }

// Status implements executor.Handler.
func (h *Handler) Status() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.presence.away != nil {
		return fmt.Sprintf("no containers: %v", h.presence.away)
	}
	m := h.presence.machine(&h.cfg)
	s := fmt.Sprintf("%d cores, %d MiB in containers of engine %s", m.MilliCPU/1000, m.MemMiB, h.presence.info.ServerVersion)
	s += "; " + limitWords[h.presence.limitBy(&h.cfg)] + "; " + h.presence.networkStatus(&h.cfg)
	return s + h.presence.boundStatus(&h.cfg) + h.presence.ioStatus(&h.cfg)
}

// Capacity implements executor.Handler: nothing while the engine is away.
func (h *Handler) Capacity() []executor.Machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.presence.away != nil {
		return nil
	}
	return []executor.Machine{h.presence.machine(&h.cfg)}
}

// Published implements executor.Handler; an engine asks nobody for room.
func (h *Handler) Published(executor.Demand) {}

// Extend implements executor.Extender.
func (h *Handler) Extend(boottime int64) error { return h.attempts.Extend(h.desk.Fence, boottime) }

// Events implements executor.Handler. The channel is closed by Close.
func (h *Handler) Events() <-chan executor.Event { return h.attempts.Events.Out() }

// closeWait is how long Close waits for an answer of the engine.
const closeWait = 5 * time.Second

// Close implements executor.Handler. A container that is being made is waited
// for, an image that is being fetched is not.
func (h *Handler) Close() error {
	h.mu.Lock()
	first := h.attempts.Shut()
	h.mu.Unlock()
	if !first {
		return nil
	}
	late := time.AfterFunc(closeWait, h.giveUp)
	h.life.Wait()
	late.Stop()
	h.giveUp()
	h.attempts.Close()
	h.engine.Close()
	h.desk.Close()
	return nil
}

// End implements executor.Handler.
func (h *Handler) End(ctx context.Context) error {
	return h.attempts.End(ctx, h, (*work).isCleaned, "its container goes on ending it")
}

var (
	_ executor.Handler  = (*Handler)(nil)
	_ executor.Extender = (*Handler)(nil)
	_ executor.Finder   = (*Handler)(nil)

	_ executor.Collector = (*Handler)(nil)

	_ executor.OutputHistory = (*Handler)(nil)
)
