package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Start implements executor.Handler. What can be known without a wait is said at
// once: whether the image may run here, and whether it is there if it may not be
// fetched.
func (h *Handler) Start(ctx context.Context, t executor.Task) error {
	return h.attempts.Start(ctx, t, func() (*work, error) { return h.admit(t) },
		func(w *work) error { return h.makeFolder(ctx, w) })
}

// admit takes room for a new attempt. REQUIRES: h.mu held.
func (h *Handler) admit(t executor.Task) (*work, error) {
	if t.Image == "" {
		return nil, fmt.Errorf("%w: no image, and this handler runs nothing else", executor.ErrUnfit)
	}
	if err := errors.Join(executor.CheckFiles(t.Files, true), t.Outputs.Check()); err != nil {
		return nil, fmt.Errorf("%w: %w", executor.ErrUnfit, err)
	}
	if _, err := placeFiles(absolute(t.Files)); err != nil {
		return nil, err
	}
	if err := errors.Join(h.room.Fit(t), h.attempts.MayKeep(t)); err != nil {
		return nil, err
	}
	if h.presence.away != nil {
		return nil, fmt.Errorf("%w: %w", executor.ErrBusy, h.presence.away)
	}
	hold, err := h.room.Take(t.Need)
	if err != nil {
		return nil, err
	}
	w := h.newWork(attempts.NewAttempt(t))
	w.Hold = hold
	return w, nil
}

// maxLook is how long an engine may take to say whether it has an image.
const maxLook = 10 * time.Second

// makeFolder makes the attempt's folder: from then on Adopt finds it. All that takes
// longer comes after.
func (h *Handler) makeFolder(ctx context.Context, w *work) error {
	ref, err := h.cfg.Images.Allow.Admit(w.Task.Image)
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
	o := box.Order{Task: withoutFiles(w.Task), Grace: h.cfg.Grace, MaxLog: h.cfg.MaxLogBytes}
	if h.limit() == byCPUs {
		o.CPUs = w.Hold.CPUs
	}
	if err = h.boundOrder(&o); err != nil {
		return fmt.Errorf("%w: %w", executor.ErrBusy, err)
	}
	if err = h.checkScratch(w.Task); err != nil {
		return err
	}
	h.setBounds(w, o)
	if !missing {
		takeImage(&o, img)
	}
	if err = box.Make(w.dir, o); err != nil {
		return errors.Join(fmt.Errorf("make its folder: %w", err), watchdog.RemoveTree(w.dir))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attempts.Closing() {
		return errors.Join(attempts.ErrClosed, watchdog.RemoveTree(w.dir))
	}
	h.life.Add(1)
	go h.attend(w, func() error {
		if missing {
			if err := h.fetch(w, ref, &o); err != nil {
				return err
			}
		}
		if err := h.stage(w, &o); err != nil {
			return err
		}
		return h.launch(w, ref, o)
	})
	return nil
}

// withoutFiles returns a task as its order has it.
func withoutFiles(t executor.Task) executor.Task {
	t.Files = nil
	return t
}

// takeImage fills in what a job leaves to its image.
func takeImage(o *box.Order, img engine.Image) {
	if len(o.Task.Command) == 0 {
		o.Task.Command = append(append([]string{}, img.Config.Entrypoint...), img.Config.Cmd...)
	}
	o.Image = box.ImageParts{
		Env: img.Config.Env, WorkingDir: img.Config.WorkingDir,
		Healthcheck: img.Config.Healthcheck != nil,
	}
}
