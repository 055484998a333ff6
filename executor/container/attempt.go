package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
	"github.com/cloudshare/cloudshare/executor/diskuse"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// work is an attempt as the handler knows it.
type work struct {
	attempts.Attempt
	dir     string
	cleaned chan struct{} // see isCleaned
	poked   chan struct{} // capacity 1: look at it again
	// files are mounts of files with absolute paths, and root is then where our own places are, by a name that no
	// image knows. Set before its container is made.
	files []engine.Mount
	root  string
	// aborted ends when the preparation is to be given up; its cause says why.
	aborted context.Context //nolint:containedctx // the attempt's own life before its container's
	abort   context.CancelCauseFunc

	// Guarded by Handler.mu.
	share   int64       // MiB of memory that it is limited to, if it asked for none; 0 = no limit
	most    diskuse.Use // that it may have on the disk; no bytes = no bound
	stopWhy string      // "" = nobody asked for its end
	began   bool        // the event was sent
	// stood: it lived when it was last looked at, and the engine has answered since.
	stood bool
}

// ended is an attempt's result, as it is kept beside its folder's other files.
type ended struct {
	attempts.End
	Forgotten bool `json:"forgotten,omitempty"`
}

func (h *Handler) newWork(a attempts.Attempt) *work {
	w := &work{Attempt: a, dir: h.folders.Of(a.Name), cleaned: make(chan struct{}), poked: make(chan struct{}, 1)}
	w.aborted, w.abort = context.WithCancelCause(context.Background())
	return w
}

// isCleaned is closed when nothing more is done about it.
func (w *work) isCleaned() <-chan struct{} { return w.cleaned }

// poke has the attempt looked at.
func (w *work) poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

func (h *Handler) container(w *work) string { return h.template.container(w) }

const (
	// relook is how soon an attempt is looked at again that has told its end and
	// has not gone yet.
	relook = 2 * time.Millisecond
	// impatience is how much longer than its grace a stop may take before the
	// engine is asked to kill: the container may be paused.
	impatience = 10 * time.Second
)

// attend sees one attempt to its end, and its container away. prepare makes and
// starts its container; nil: an earlier life of the broker did, or may have.
func (h *Handler) attend(w *work, prepare func() error) {
	defer h.life.Done()
	defer close(w.cleaned)
	defer w.abort(nil)
	grown, unlist, err := h.desk.Notices.Add(box.Told(w.dir))
	if err != nil { // its folder was removed, or there are too many watches
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("attempt cannot be watched; it is looked at every second")
		unlist, err = func() {}, nil
	}
	defer unlist()
	if prepare != nil {
		if err = prepare(); errors.Is(err, attempts.ErrClosed) {
			return // the next life finds out what has become of it
		}
		if err != nil {
			h.void(w, h.unprepared(w, err))
		}
	}
	fresh := prepare != nil && err == nil
	h.setStood(w, fresh)
	if most := h.boundOf(w); most.Bytes > 0 {
		h.life.Go(func() { h.watchDisk(w, most) })
	}
	h.watchAttempt(w, grown, fresh)
	h.clean(w)
}

// void ends an attempt that has not begun, for certain: whatever the engine
// still does with its container, its first process will find it ended.
func (h *Handler) void(w *work, r executor.Result) {
	if _, err := box.Void(w.dir, r); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("attempt that did not begin cannot be ended; looked at again")
	}
}

// watchAttempt returns when the attempt has ended, or the handler is closed. One that
// is fresh will say so itself.
func (h *Handler) watchAttempt(w *work, grown <-chan struct{}, fresh bool) {
	wait := time.NewTimer(time.Second)
	defer wait.Stop()
	var deadline <-chan time.Time // of a stop
	for pause := relook; ; {
		if !fresh {
			soon := h.checkAttempt(w)
			if h.isEnded(w) {
				return
			}
			switch {
			case soon:
				wait.Reset(pause)
				pause = min(2*pause, time.Second)
			case grown == nil:
				wait.Reset(time.Second)
			default:
				wait.Reset(time.Hour)
			}
		}
		fresh = false
		if deadline == nil && h.whyStopped(w) != "" {
			deadline = time.After(h.cfg.Grace + impatience)
		}
		select {
		case <-grown:
		case <-w.poked:
		case <-wait.C:
		case <-deadline:
			h.killByEngine(w)
			deadline = nil
		case <-h.attempts.Quit:
			return
		}
	}
}

// checkAttempt takes the attempt's own word; soon: it is to be looked at again.
func (h *Handler) checkAttempt(w *work) (soon bool) {
	word, err := box.Hear(w.dir)
	if err != nil {
		return h.abandon(w, "its folder cannot be read: "+err.Error())
	}
	if word.Run != nil {
		h.hasBegun(w, word.Run.At)
	}
	if word.Alive {
		h.setStood(w, true)
	}
	switch {
	case word.Alive && word.Ended != nil:
		return true
	case word.Alive:
		if why := h.whyStopped(w); why != "" {
			if _, err := box.Stop(w.dir, why); err != nil {
				h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("stop not delivered to the attempt")
			}
		}
		return false
	case word.Ended != nil:
		h.endAttempt(w, word.Ended.Result)
		return false
	}
	return h.inquire(w)
}

// abandon ends an attempt that nothing can be heard of any more: its container is
// removed before it is told lost. soon: that did not work yet.
func (h *Handler) abandon(w *work, why string) (soon bool) {
	if err := h.remove(h.container(w)); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Str("why", why).Msg("attempt cannot be ended yet, will be tried again")
		return true
	}
	h.endAttempt(w, lost(why))
	return false
}

// inquire asks the engine about an attempt that says nothing; soon: it has begun
// or ended in between.
func (h *Handler) inquire(w *work) (soon bool) {
	ctx, cancel := h.patience()
	defer cancel()
	c, err := h.engine.Inspect(ctx, h.container(w))
	switch {
	case errors.Is(err, engine.ErrNotFound): // never made, or removed
	case err != nil:
		if why := h.whyStopped(w); why != "" {
			h.void(w, stoppedBefore(why)) // if it has not begun
			return h.hasWord(w)
		}
		return false // the engine comes back: see catchUp
	case c.State.Running || c.State.Status == "paused" || c.State.Status == "restarting" || c.State.Status == "stopping":
		return true // about to tell
	}
	h.void(w, h.lastWord(w, c))
	if h.hasWord(w) {
		return true
	}
	h.endAttempt(w, h.lastWord(w, c)) // it had begun
	return false
}

// hasWord: its first process lives, or its end is told.
func (h *Handler) hasWord(w *work) bool {
	word, err := box.Hear(w.dir)
	return err == nil && (word.Alive || word.Ended != nil)
}

// stoppedBefore returns the end of what nobody wants any more before it began.
func stoppedBefore(why string) executor.Result {
	return executor.Result{Cause: executor.Stopped, Detail: "stopped before it began: " + why}
}

// lastWord returns how an attempt ended whose first process told nothing; c is what
// the engine has of it.
func (h *Handler) lastWord(w *work, c engine.Container) executor.Result {
	why := h.whyStopped(w)
	switch {
	case why != "":
		return executor.Result{Cause: executor.Stopped, Signal: 9, ExitCode: 137, Detail: "stopped: " + why}
	case c.ID == "":
		return lost("its container is gone")
	case c.State.Status == "created":
		return lost("its container was never started")
	case c.State.OOMKilled:
		return h.ran(w, executor.Result{
			Cause: executor.Exited, ExitCode: 137, Signal: 9,
			Detail: watchdog.OutOfMemory(w.Task, h.shareOf(w)),
		})
	}
	if r := h.ran(w, orphan(c)); h.mayBeOrphan(w, c) && !r.Started.IsZero() {
		return r
	}
	detail := fmt.Sprintf("its container was ended from outside (code %d)", c.State.ExitCode)
	if c.State.Error != "" {
		detail += ": " + c.State.Error
	}
	return lost(detail)
}

func lost(why string) executor.Result {
	return executor.Result{Cause: executor.Vanished, Detail: "lost: " + why}
}

// killByEngine ends a container whose first process does not do it.
func (h *Handler) killByEngine(w *work) {
	ctx, cancel := h.patience()
	defer cancel()
	h.cfg.Logger.Warn().Str("attempt", w.Name).Msg("attempt does not end by itself; its container is removed")
	if err := h.engine.Remove(ctx, h.container(w)); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("container was not removed, will be tried again")
	}
}

// patience bounds one call of the engine about a single container; a handler that
// is closed has less of it.
func (h *Handler) patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(h.calls, time.Minute)
}

func (h *Handler) isEnded(w *work) bool { return h.attempts.EndOf(w) != nil }

func (h *Handler) whyStopped(w *work) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.stopWhy
}

func (h *Handler) hasBegun(w *work, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.Began.IsZero() {
		w.Began = at
	}
	if !w.began && w.Ended == nil {
		w.began = true
		h.attempts.Events.Put(executor.Event{ID: w.Task.ID, Started: true})
	}
}

// endAttempt ends an attempt. Its result is written before it is told.
func (h *Handler) endAttempt(w *work, r executor.Result) {
	e := attempts.End{Result: r, At: time.Now()}
	for i, name := range attempts.Streams {
		if st, err := os.Stat(filepath.Join(w.dir, name)); err == nil {
			e.Out[i] = st.Size()
		}
	}
	if err := writeEnd(w, ended{End: e}); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("result not written; it is kept in memory")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts.Settle(w, &e)
}

// clean removes what an ended attempt does not need any more. What an engine that
// is away keeps is removed when it comes back: see catchUp.
func (h *Handler) clean(w *work) {
	if !h.isEnded(w) {
		return
	}
	if err := h.removeAll(w); err != nil {
		level := zerolog.WarnLevel
		if errors.Is(err, engine.ErrAway) { // that was said once
			level = zerolog.DebugLevel
		}
		h.cfg.Logger.WithLevel(level).Err(err).Str("attempt", w.Name).Msg("container stays for now, until the engine is heard again")
		return
	}
	if err := watchdog.RemoveTree(filepath.Join(w.dir, box.Inputs)); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("its files cannot be removed")
	}
	if !h.isKept(w) {
		h.removeWork(w)
	}
}

// removeWork removes an attempt's working directory.
func (h *Handler) removeWork(w *work) {
	if err := watchdog.RemoveTree(box.WorkOf(w.dir)); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("its working directory cannot be removed: files of another user? remove it as root")
	}
}

// isKept reports whether the files of an ended attempt are kept until it is forgotten.
func (h *Handler) isKept(w *work) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.IsKept() && !w.Forgotten
}

// removeAll takes an attempt's containers away.
func (h *Handler) removeAll(w *work) error {
	if err := h.remove(h.container(w)); err != nil || h.cfg.Foreign.Of(w.Task, h.cfg.Site) != executor.NetworkOutbound {
		return err
	}
	return h.remove(h.template.keeper(w))
}

// removals bounds how often an engine is asked to remove one container; the
// pauses between sum up to some 25 s.
const removals = 9

// remove takes a container away. Podman refuses as long as it is stopping.
func (h *Handler) remove(id string) error {
	pause := 50 * time.Millisecond
	for n := 1; ; n++ {
		ctx, cancel := h.patience()
		err := h.engine.Remove(ctx, id)
		cancel()
		if err == nil || errors.Is(err, engine.ErrAway) || n == removals {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-h.attempts.Quit:
			return err
		}
	}
}
