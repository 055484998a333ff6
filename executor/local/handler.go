package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Handler runs tasks on this machine. See the contract, [executor.Handler].
type Handler struct {
	cfg     Config
	boot    string
	lock    *os.File
	fence   *watchdog.Page
	fenceF  *os.File
	stderr  *os.File // of supervisors, for the rare panic
	groups  cgroups
	events  *books.Queue
	notices *books.Notices
	janitor *books.Janitor
	quit    chan struct{}  // closed by Close
	life    sync.WaitGroup // readers and watchers

	mu       sync.Mutex
	adopted  bool
	closing  bool // no new attempts
	closed   bool
	attempts map[string]*work // by name, forgotten ones until retention drops them
	slots    map[string]*slot
	idle     []*slot // supervisors without an attempt, the warmest last
	use      *books.Room
	nslot    int
}

// work is an attempt as the handler knows it.
type work struct {
	task  executor.Task
	name  string
	hold  books.Hold
	limit int64 // bytes of each output
	// slot does not change once accepted is closed.
	slot *slot

	accepted chan struct{} // closed when Start is decided
	running  chan struct{} // closed when its process runs
	done     chan struct{} // closed when ended is set
	startErr error         // why Start failed; set before accepted is closed
	// ended is nil while it runs. Invariant: set once, before done is closed.
	ended     *ended
	forgotten bool
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
		cfg: cfg, boot: watchdog.BootID(), attempts: map[string]*work{}, slots: map[string]*slot{},
		use: newRoom(cfg), events: books.NewQueue(),
		quit: make(chan struct{}),
	}
	if err := h.takeDir(); err != nil {
		h.events.Close()
		return nil, fmt.Errorf("open local handler at %s: %w", cfg.Dir, err)
	}
	if !cfg.NoCgroups {
		h.groups = findCgroups(cfg.Dir)
	} else {
		h.groups.why = "cgroups are switched off"
	}
	h.janitor = books.StartJanitor(cfg.Retention, h.evict)
	return h, nil
}

func (h *Handler) takeDir() (err error) {
	if err = h.cfg.makeDirs(); err != nil {
		return err
	}
	open := func(name string) (*os.File, error) {
		return os.OpenFile(filepath.Join(h.cfg.Dir, name), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	}
	if h.lock, err = open("lock"); err != nil {
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
	if h.stderr, err = open("supervisors.log"); err != nil {
		return err
	}
	if h.fence, h.fenceF, err = watchdog.OpenPage(filepath.Join(h.cfg.Dir, "fence")); err != nil {
		return err
	}
	h.notices, err = books.OpenNotices()
	return err
}

func (h *Handler) closeFiles() {
	if h.notices != nil {
		h.notices.Close()
	}
	if h.fence != nil {
		_ = h.fence.Close()
	}
	for _, f := range []*os.File{h.fenceF, h.stderr, h.lock} {
		if f != nil {
			f.Close()
		}
	}
}

// Name implements executor.Handler.
func (h *Handler) Name() string { return "local" }

// Status implements executor.Handler.
func (h *Handler) Status() string {
	s := fmt.Sprintf("%d cores, %d MiB", h.cfg.Cores, h.cfg.MemMiB)
	if h.cfg.Pin {
		s += ", pinned"
	}
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
	}}
}

// Published implements executor.Handler; this machine asks nobody for room.
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

// Close implements executor.Handler: supervisors see the broker go, finish
// what they have and leave.
func (h *Handler) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed, h.closing = true, true
	close(h.quit)
	for _, s := range h.slots {
		s.detach()
	}
	h.mu.Unlock()
	h.life.Wait()
	h.janitor.Close()
	h.events.Close()
	h.closeFiles()
	for _, base := range []string{h.groups.kill, h.groups.mem} {
		if base != "" {
			_ = os.Remove(base) // stays while supervisors have groups in it
		}
	}
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
		case <-w.done:
		case <-ctx.Done():
			return fmt.Errorf("end attempts: %s still runs, its supervisor goes on killing it: %w", w.name, ctx.Err())
		}
	}
	return errors.Join(append(errs, h.Close())...)
}

var (
	_ executor.Handler  = (*Handler)(nil)
	_ executor.Extender = (*Handler)(nil)
)
