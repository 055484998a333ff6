package container

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// errStopped: nobody wants the attempt any more.
var errStopped = errors.New("stopped")

// errSilent: an image stopped coming.
var errSilent = errors.New("its fetching has told nothing")

// maxAway is how long an attempt waits for an engine that went away before its
// container was started; then another site may have it.
const maxAway = 30 * time.Second

// maxFetching is how long after its first failure an image is asked for again, with
// growing pauses; then another site may try. Podman has tried several times before
// it says so.
const maxFetching = 8 * time.Second

// fetch gets an image and fills in what the order leaves to it.
func (h *Handler) fetch(w *work, ref executor.ImageName, o *box.Order) error {
	ctx, cancel := h.abortable(w)
	defer cancel()
	var failing time.Time // since when; zero = not yet
	for pause := time.Second; ; {
		err := h.fetchOnce(ctx, w, ref, o)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failed := &noImage{ref, err}
		if errors.Is(err, engine.ErrAway) {
			if err = h.awaitEngine(w, failed); err != nil {
				return err
			}
			continue
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		if failed.isWrong() || errors.Is(err, errSilent) || time.Since(failing)+pause > maxFetching {
			return failed
		}
		h.emitDoing(w, fmt.Sprintf("fetching %v; tried again in %s", failed, pause))
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (h *Handler) fetchOnce(ctx context.Context, w *work, ref executor.ImageName, o *box.Order) error {
	h.emitDoing(w, "fetching image "+ref.String())
	latest, shown := time.Now(), engine.Progress{}
	pulling, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(h.cfg.PullSilence, cancel)
	err := h.engine.Pull(pulling, ref.String(), func(p engine.Progress) {
		silence.Reset(h.cfg.PullSilence)
		if now := time.Now(); p != shown && now.Sub(latest) >= time.Second {
			latest, shown = now, p
			h.emitDoing(w, fetching(ref, p))
		}
	})
	switch spoke := silence.Stop(); {
	case err != nil && !spoke && ctx.Err() == nil:
		return fmt.Errorf("%w for %s: its registry is stuck, or slow", errSilent, h.cfg.PullSilence)
	case err != nil:
		return err
	}
	img, err := h.engine.Image(ctx, ref.String())
	if err != nil {
		return err
	}
	takeImage(o, img)
	return box.WriteOrder(w.dir, *o)
}

// noImage: an image was not to be had.
type noImage struct {
	ref   executor.ImageName
	cause error
}

// Error implements error.
func (e *noImage) Error() string { return fmt.Sprintf("image %s: %v", e.ref, e.cause) }

// Unwrap returns the engine's reason.
func (e *noImage) Unwrap() error { return e.cause }

// isWrong: it is the name that is wrong, or the right to it that lacks, not the
// way to the registry. Engines say so only in words, which are the registries'.
func (e *noImage) isWrong() bool {
	said, ok := errors.AsType[*engine.Refusal](e.cause)
	if !ok {
		return false
	}
	if said.Status == http.StatusNotFound || said.Status == http.StatusBadRequest {
		return true
	}
	for _, words := range []string{"not found", "manifest unknown", "name unknown", "denied", "unauthorized", "no matching manifest", "invalid reference"} {
		if strings.Contains(strings.ToLower(said.Message), words) {
			return true
		}
	}
	return false
}

// fetching returns a pull's progress for people.
func fetching(ref executor.ImageName, p engine.Progress) string {
	s := fmt.Sprintf("fetching image %s: %d of %d layers", ref, p.Done, p.Layers)
	if p.Bytes > 0 {
		s += ", " + strconv.FormatInt(100*p.Fetched/p.Bytes, 10) + "% of those under way"
	}
	return s
}

// emitDoing tells what the attempt waits for before it starts.
func (h *Handler) emitDoing(w *work, what string) {
	h.attempts.Events.Put(executor.Event{ID: w.Task.ID, Doing: what})
}

// abortable ends when the attempt is stopped or the handler closed.
func (h *Handler) abortable(w *work) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(w.aborted)
	done := make(chan struct{})
	go func() {
		select {
		case <-h.attempts.Quit:
			cancel(attempts.ErrClosed)
		case <-done:
		}
	}()
	return ctx, func() { close(done); cancel(nil) }
}

// launch makes and starts the attempt's container. An engine that goes away
// meanwhile is waited for; since the name is the attempt's own, and its first
// process begins once, a repeat of either call changes nothing.
func (h *Handler) launch(w *work, ref executor.ImageName, o box.Order) error {
	spec := h.template.spec(w, ref, o, h.limit())
	if w.Task.Owner != h.cfg.Site {
		r := h.reach()
		r.bound(&spec.HostConfig, h.cfg.IO)
	}
	for {
		err := h.launchOnce(w, ref, spec)
		if !errors.Is(err, engine.ErrAway) {
			return err
		}
		if err = h.awaitEngine(w, err); err != nil {
			return err
		}
	}
}

func (h *Handler) launchOnce(w *work, ref executor.ImageName, spec engine.Spec) error {
	if w.aborted.Err() != nil {
		return context.Cause(w.aborted)
	}
	if h.cfg.Foreign.Of(w.Task, h.cfg.Site) == executor.NetworkOutbound {
		if err := h.openNetwork(w, ref); err != nil {
			return err
		}
	}
	err := h.startContainer(w, spec)
	if spec.HostConfig.IsBounded() {
		h.noteBounds(err)
	}
	return err
}

func (h *Handler) startContainer(w *work, spec engine.Spec) error {
	ctx, cancel := h.patience()
	defer cancel()
	if _, err := h.engine.Create(ctx, h.container(w), spec); err != nil && !errors.Is(err, engine.ErrConflict) {
		return fmt.Errorf("make its container: %w", err)
	}
	if err := h.engine.Start(ctx, h.container(w)); err != nil {
		return fmt.Errorf("start its container: %w", err)
	}
	return nil
}

// awaitEngine returns when the engine answers; an error says why nobody waits: away if
// it does not come back.
func (h *Handler) awaitEngine(w *work, away error) error {
	h.lostEngine()
	late := time.NewTimer(maxAway)
	defer late.Stop()
	h.mu.Lock()
	up := h.presence.up
	h.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-w.aborted.Done():
		return context.Cause(w.aborted)
	case <-h.attempts.Quit:
		return attempts.ErrClosed
	case <-late.C:
		return away
	}
}

// unprepared returns the end of an attempt whose container does not run. What is
// wrong with the task fails it; of what is the site's own trouble it is declined.
func (h *Handler) unprepared(w *work, err error) executor.Result {
	said, refused := errors.AsType[*engine.Refusal](err)
	image, unfetched := errors.AsType[*noImage](err)
	switch {
	case errors.Is(err, errStopped):
		return stoppedBefore(h.whyStopped(w))
	case unfetched && image.isWrong(), !unfetched && refused && h.isImages(said.Message):
		return executor.Result{Cause: executor.NoStart, ExitCode: 125, Detail: err.Error()}
	}
	h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("a task of a container could not be started here")
	if unfetched { // another site may have a better way to the registry, but not forever
		return lost("not started: " + err.Error())
	}
	return watchdog.NotBegun(&watchdog.Trouble{Cause: err})
}

// isImages: a container cannot be made or started for what its image says: a user
// that it has not, or a file as working directory. All else is the site's own, such
// as a network or a mount of its configuration; engines tell the two by words only.
func (h *Handler) isImages(message string) bool {
	said := func(words string) bool { return strings.Contains(message, words) }
	if h.cfg.User == "" && (said("no matching entries in") || said("uids and gids must be in range")) {
		return true
	}
	return said("Cannot mkdir: ") && said("is not a directory") || said("workdir ") && said("is not a directory")
}
