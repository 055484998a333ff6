package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Handler runs tasks on this machine. See the contract, [executor.Handler].
type Handler struct {
	cfg      Config
	boot     string
	desk     *attempts.Desk
	aside    *attempts.Aside
	attempts *attempts.Set[*work]
	stderr   *os.File // of supervisors, for the rare panic
	groups   cgroups
	contain  containment
	life     sync.WaitGroup // readers and watchers

	mu    sync.Mutex // of the attempts, too
	cores cores
	slots map[string]*slot
	idle  []*slot // supervisors without an attempt, the warmest last
	use   *attempts.Room
	nslot int
	// stopping: the broker is stopped. strays are ends by signals that are not settled yet, since it might be.
	stopping bool
	strays   map[*work]*ended
}

// work is an attempt as the handler knows it.
type work struct {
	attempts.Attempt
	limit int64 // bytes of each output
	// slot does not change once the start is accepted.
	slot    *slot
	running chan struct{} // closed when its process runs
	// unstage ends the copying of its files, nil = not begun; unstaged: nobody wants it any
	// more. Guarded by Handler.mu.
	unstage  context.CancelCauseFunc
	unstaged bool
}

// Open takes the directory and probes the machine. Nothing runs before Adopt.
func Open(cfg Config) (*Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Handler{
		cfg: cfg, boot: watchdog.BootID(), slots: map[string]*slot{}, strays: map[*work]*ended{},
		aside: attempts.NewAside(cfg.Keeping),
	}
	if err = h.takeDir(); err != nil {
		return nil, fmt.Errorf("open local handler at %s: %w", cfg.Dir, err)
	}
	if !cfg.NoCgroups {
		h.groups = findCgroups(cfg.Dir)
		h.groups.io.findDisks(cfg)
	} else {
		const off = "cgroups are switched off"
		h.groups.why, h.groups.whyCPU, h.groups.io = off, off, bandwidth{most: cfg.IO, why: off}
	}
	h.contain = findContainment(cfg, &h.groups)
	for _, text := range h.contain.warnings(os.Getuid() == 0) {
		cfg.Logger.Warn().Msg(text)
	}
	h.cores = findCores(cfg, &h.groups)
	h.use = attempts.NewRoom(machineName, cfg.Cores, cfg.MemMiB, h.cores.cpus)
	if h.attempts, err = attempts.NewSet[*work](&h.mu, cfg.Keeping, h.use.Release, h.shelf()); err != nil {
		h.desk.Close()
		h.stderr.Close()
		return nil, fmt.Errorf("open local handler at %s: %w", cfg.Dir, err)
	}
	return h, nil
}

func (h *Handler) takeDir() (err error) {
	if err = h.makeDirs(); err != nil {
		return err
	}
	if h.desk, err = attempts.OpenDesk(h.cfg.Dir, "fence"); err != nil {
		return err
	}
	// For writing only: those that have it are to read nothing of each other.
	if h.stderr, err = os.OpenFile(h.logPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		h.desk.Close()
	}
	return err
}

// logPath is where supervisors write what has no other place.
func (h *Handler) logPath() string { return filepath.Join(h.cfg.Dir, "supervisors.log") }

// Name implements executor.Handler.
func (h *Handler) Name() string { return "local" }

// Status implements executor.Handler.
func (h *Handler) Status() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := fmt.Sprintf("%d cores, %d MiB; %s; %s", h.cfg.Cores, h.cfg.MemMiB,
		h.contain.status(h.cfg.Scratch), h.cores.status(h.cfg.Cores, &h.groups)) + h.groups.io.status()
	if h.groups.mem == "" {
		return s + "; memory limits are not enforced: " + h.groups.why
	}
	return s + "; memory limits enforced by cgroup " + h.groups.mem
}

// Capacity implements executor.Handler.
func (h *Handler) Capacity() []executor.Machine {
	return []executor.Machine{{
		Name:      machineName,
		Resources: executor.Resources{MilliCPU: int64(h.cfg.Cores) * 1000, MemMiB: h.cfg.MemMiB},
		Runs:      executor.RunsCommands,
		Network:   h.contain.network(),
	}}
}

// Published implements executor.Handler; this machine asks nobody for room.
func (h *Handler) Published(executor.Demand) {}

// Extend implements executor.Extender.
func (h *Handler) Extend(boottime int64) error { return h.attempts.Extend(h.desk.Fence, boottime) }

// Events implements executor.Handler. The channel is closed by Close.
func (h *Handler) Events() <-chan executor.Event { return h.attempts.Events.Out() }

// Close implements executor.Handler: supervisors see the broker go, finish
// what they have and leave.
func (h *Handler) Close() error {
	h.mu.Lock()
	first := h.attempts.Shut()
	if first {
		for _, s := range h.slots {
			s.detach()
		}
	}
	h.mu.Unlock()
	if !first {
		return nil
	}
	h.life.Wait()
	h.attempts.Close()
	h.desk.Close()
	h.stderr.Close()
	h.groups.close()
	return nil
}

// End implements executor.Handler.
func (h *Handler) End(ctx context.Context) error {
	h.BrokerStops()
	return h.attempts.End(ctx, h, func(w *work) <-chan struct{} { return w.Done }, "its supervisor goes on killing it")
}

var (
	_ executor.Handler   = (*Handler)(nil)
	_ executor.Extender  = (*Handler)(nil)
	_ executor.Finder    = (*Handler)(nil)
	_ executor.Collector = (*Handler)(nil)

	_ executor.Forewarned    = (*Handler)(nil)
	_ executor.OutputHistory = (*Handler)(nil)
)
