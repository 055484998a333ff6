package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// Start implements executor.Handler. What can be known without a wait is said at
// once: whether the image may run here, and whether it is there if it may not be
// fetched.
func (h *Handler) Start(ctx context.Context, t executor.Task) error {
	name := t.ID.String()
	if !books.ValidName(name) {
		return fmt.Errorf("start %.80q: %w: an id holds only [a-z0-9.-], at most 200", name, executor.ErrUnfit)
	}
	w, first, err := h.admit(t)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	if !first {
		select {
		case <-w.accepted:
			return w.startErr
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w", name, ctx.Err())
		}
	}
	if err = h.begin(ctx, w); err != nil {
		err = fmt.Errorf("start %s: %w", name, err)
		h.mu.Lock()
		h.room.Release(w.hold)
		delete(h.attempts, name)
		h.mu.Unlock()
	}
	w.startErr = err
	close(w.accepted)
	return err
}

// admit takes room for a new attempt, or finds the one of that name.
func (h *Handler) admit(t executor.Task) (w *work, first bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, false, books.ErrClosed
	}
	if !h.adopted {
		return nil, false, books.ErrNotAdopted
	}
	w = h.newWork(t)
	if known := h.attempts[w.name]; known != nil {
		if known.forgotten {
			return nil, false, fmt.Errorf("%w: it has run and was forgotten", executor.ErrUnknownAttempt)
		}
		return known, false, nil
	}
	if t.Image == "" {
		return nil, false, fmt.Errorf("%w: no image, and this handler runs nothing else", executor.ErrUnfit)
	}
	if err = h.room.Fit(t); err != nil {
		return nil, false, err
	}
	if h.away != nil {
		return nil, false, fmt.Errorf("%w: %w", executor.ErrBusy, h.away)
	}
	if w.hold, err = h.room.Take(t.Need); err != nil {
		return nil, false, err
	}
	h.attempts[w.name] = w
	return w, true, nil
}

// maxLook is how long an engine may take to say whether it has an image.
const maxLook = 10 * time.Second

// begin makes the attempt's folder: from then on Adopt finds it. All that takes
// longer comes after.
func (h *Handler) begin(ctx context.Context, w *work) error {
	ref, err := books.Images(h.cfg.Images.Allow).Admit(w.task.Image)
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	img, err := h.engine.Image(short, ref.String())
	missing := errors.Is(err, engine.ErrNotFound)
	switch {
	case missing && h.cfg.Images.Pull == PullNever:
		return fmt.Errorf("%w: image %s is not here, and this site fetches none", executor.ErrUnfit, ref)
	case errors.Is(err, engine.ErrAway) && ctx.Err() == nil:
		h.lostEngine()
		fallthrough
	case err != nil && !missing:
		return fmt.Errorf("%w: look for image %s: %w", executor.ErrBusy, ref, err)
	}
	o := box.Order{Task: w.task, Grace: h.cfg.Grace, MaxLog: h.cfg.MaxLogBytes, CPUs: w.hold.CPUs}
	if !missing {
		takeImage(&o, img)
	}
	if err = box.Make(w.dir, o); err != nil {
		return errors.Join(fmt.Errorf("make its folder: %w", err), os.RemoveAll(w.dir))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return errors.Join(books.ErrClosed, os.RemoveAll(w.dir))
	}
	h.life.Add(1)
	go h.attend(w, func() error {
		if missing {
			if err := h.fetch(w, ref, &o); err != nil {
				return err
			}
		}
		return h.launch(w, ref, o)
	})
	return nil
}

// takeImage fills in what a job leaves to its image.
func takeImage(o *box.Order, img engine.Image) {
	if len(o.Task.Command) == 0 {
		o.Task.Command = append(append([]string{}, img.Config.Entrypoint...), img.Config.Cmd...)
	}
	o.Image = box.ImageParts{Env: img.Config.Env, WorkingDir: img.Config.WorkingDir}
}
