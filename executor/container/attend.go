package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// Pauses between two looks for an engine that is away.
const (
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// listen hears the engine until the handler is closed. Whenever it begins to
// hear, all that may have happened before is caught up.
func (h *Handler) listen() {
	defer h.life.Done()
	pause := minPause
	for {
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() { // the engine's words may be long in coming
			select {
			case <-h.attempts.Quit:
				cancel(attempts.ErrClosed)
			case <-h.presence.silent: // another call was not answered: this stream may hang, too
				cancel(engine.ErrAway)
			case <-ctx.Done():
			}
		}()
		err := h.engine.Events(ctx, labelHome+"="+h.id, func() {
			if err := h.catchUp(ctx); err != nil {
				cancel(err)
				return
			}
			pause = minPause
		}, h.heard)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(err)
		h.setAway(err)
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		case <-h.attempts.Quit:
			return
		}
	}
}

// catchUp compares the engine's containers with the attempts: what ended
// meanwhile is looked at, what belongs to none is removed.
func (h *Handler) catchUp(ctx context.Context) error {
	info, err := h.engine.Info(ctx)
	if err != nil {
		return err
	}
	list, err := h.engine.List(ctx, labelHome+"="+h.id)
	if err != nil {
		return err
	}
	for _, c := range list {
		if !h.wanted(c.Labels[labelName]) {
			if err := h.remove(c.ID); err != nil {
				return fmt.Errorf("remove a container that belongs to no attempt: %w", err)
			}
		}
	}
	h.setUp(info, findReach(&h.cfg, info.RootDir))
	return nil
}

// wanted: the container's attempt runs, or is about to.
func (h *Handler) wanted(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.attempts.Get(name)
	return w != nil && w.Ended == nil
}

// heard takes the engine's word of one container.
func (h *Handler) heard(e engine.Event) {
	name := e.Labels[labelName]
	h.mu.Lock()
	w := h.attempts.Get(name)
	wanted := w != nil && w.Ended == nil
	h.mu.Unlock()
	switch {
	case wanted && e.Action == "die":
		w.poke()
	case !wanted && e.Action == "create": // asked for in an earlier life, or given up
		if err := h.remove(e.ID); err != nil {
			h.cfg.Logger.Warn().Err(err).Str("attempt", name).Msg("a container that belongs to no attempt was not removed, will be tried again")
		}
	}
}

// setUp: the engine answers. All that runs is looked at.
func (h *Handler) setUp(info engine.Info, r reach) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.presence.setUp(info, r)
	for w := range h.attempts.Running() {
		w.poke()
	}
	h.attempts.Events.Put(executor.Event{Capacity: true})
	if info.NCPU < h.cfg.Cores {
		h.cfg.Logger.Warn().Int("cores", h.cfg.Cores).Int("engine", info.NCPU).Msg("more cores are given to containers than their machine has")
	}
}

// lostEngine: a call was not answered. The engine counts as away until it has
// been heard again.
func (h *Handler) lostEngine() {
	h.setAway(engine.ErrAway)
	select {
	case h.presence.silent <- struct{}{}:
	default:
	}
}

// setAway: the engine does not answer; nothing is offered until it does.
func (h *Handler) setAway(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wasUp, first := h.presence.setAway(err)
	for w := range h.attempts.Running() { // what ends before it is looked at again may have ended with the engine
		w.stood = false
	}
	if wasUp {
		h.attempts.Events.Put(executor.Event{Capacity: true})
	}
	if (wasUp || first) && !errors.Is(err, attempts.ErrClosed) {
		h.cfg.Logger.Warn().Err(err).Msg("the container engine is away: what runs goes on, nothing is started until it is back")
	}
}
