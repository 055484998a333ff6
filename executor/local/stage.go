package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/diskuse"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/staging"
)

// errStaged: nobody wants an attempt any more whose files are being copied.
var errStaged = errors.New("stopped while its files were copied")

// stage copies an attempt's files into the work folder of its slot, which is empty. No
// process of any attempt is there meanwhile.
func (h *Handler) stage(ctx context.Context, s *slot, w *work) error {
	if len(w.Task.Files) == 0 {
		return nil
	}
	if err := h.checkScratch(s, w); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h.mu.Lock()
	w.unstage = cancel
	stopped := w.unstaged
	h.mu.Unlock()
	if stopped {
		cancel(errStaged)
	}
	copied := make(chan struct{})
	defer close(copied)
	go func() {
		select {
		case <-h.attempts.Quit:
			cancel(attempts.ErrClosed)
		case <-copied:
		}
	}()
	if err := h.put(ctx, s, w.Task.Files); err != nil {
		return fmt.Errorf("%w: %w", executor.ErrBusy, err)
	}
	return nil
}

// put copies files into a slot's work folder. A new supervisor may be about to make it.
func (h *Handler) put(ctx context.Context, s *slot, files []executor.File) error {
	dir := filepath.Join(s.dir, sandbox.WorkFolder)
	if !s.contained && !s.served {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return staging.Put(ctx, dir, files, h.rightsIn(s))
}

// rightsIn returns those of a slot's tasks on their files.
func (h *Handler) rightsIn(s *slot) staging.Rights {
	r := staging.Private()
	if s.contained && h.contain.plan.Become {
		r.Give, r.UID, r.GID = true, h.contain.plan.UID, h.contain.plan.GID
	}
	return r
}

// checkScratch refuses what would be over its scratch by the files that it gets.
func (h *Handler) checkScratch(s *slot, w *work) error {
	if !s.contained || h.cfg.Scratch < 0 {
		return nil
	}
	size, err := staging.Size(w.Task.Files)
	if err != nil {
		return fmt.Errorf("%w: %w", executor.ErrBusy, err)
	}
	if most := h.cfg.Scratch; most > 0 {
		if size > most {
			return fmt.Errorf("%w: its files have %d bytes, and a task's scratch is %s here", executor.ErrUnfit, size, diskuse.Mebibytes(most))
		}
		return nil
	}
	free, err := diskuse.Free(h.cfg.Dir)
	free.Bytes -= size // when they are there
	if err == nil && size > free.Bound(0).Bytes {
		err = fmt.Errorf("its files have %d bytes, and the disk has no room for that", size)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", executor.ErrBusy, err)
	}
	return nil
}

// abandonStaging ends the copying of an attempt's files.
func (h *Handler) abandonStaging(id executor.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.attempts.Get(id.String())
	if w == nil {
		return
	}
	if w.unstaged = true; w.unstage != nil {
		w.unstage(errStaged)
	}
}
