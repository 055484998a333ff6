package container

import (
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// killed is the exit code of a container whose first process was killed. Nothing inside can do that.
const killed = 137

// setStood notes whether an attempt's first process and the engine were there when they were last looked at. Without
// the engine it does not stand, though it lives: it may end with what the engine ends as it goes, or comes back.
func (h *Handler) setStood(w *work, stood bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.stood = stood && h.presence.away == nil
}

// mayBeOrphan reports whether an attempt's task may have ended its container, whose first process told nothing:
// by a fault of that process, say. It was not killed from outside, this broker saw it live, and the engine has
// answered since.
func (h *Handler) mayBeOrphan(w *work, c engine.Container) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.stood && !h.desk.IsFenced(w.Task) && c.State.ExitCode != killed
}

// orphan returns the end of an attempt that lost its first process.
func orphan(c engine.Container) executor.Result {
	return executor.Result{Cause: executor.Orphaned, ExitCode: c.State.ExitCode, Detail: fmt.Sprintf(
		"orphaned: the first process of its container ended without a word (code %d), while its engine stood",
		c.State.ExitCode)}
}

// ran adds when an attempt began, if that is known, and how long it ran by now at most, by the wall's clock.
func (h *Handler) ran(w *work, r executor.Result) executor.Result {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !w.Began.IsZero() {
		r.Started, r.Run = w.Began, max(time.Since(w.Began), time.Millisecond)
	}
	return r
}
