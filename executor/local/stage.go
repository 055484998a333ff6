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
	return diskuse.Fits(h.cfg.Dir, h.cfg.Scratch, w.Task.Files)
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
