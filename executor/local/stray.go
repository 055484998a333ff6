package local

import (
	"cmp"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// strayWait is how long a supervisor's end by a signal is not judged: whoever stops a broker may signal all that it has
// begun, and which of them hears of it first is chance.
const strayWait = 2 * time.Second

// isStray reports whether its supervisor was signalled to end, which says nothing yet of the broker.
func (e *ended) isStray() bool {
	return e.Result.Cause == executor.Orphaned && e.Result.Detail == strayed
}

// settle tells an attempt's end: that of a stray one after a while, unless the broker is stopped meanwhile. If this
// handler is closed by then, nothing is told: the next life of the broker finds that none looked.
// REQUIRES: h.mu held.
func (h *Handler) settle(w *work, e *ended) {
	if !e.isStray() || h.stopping {
		h.settleNow(w, e)
		return
	}
	h.strays[w] = e
	time.AfterFunc(cmp.Or(h.cfg.strayFor, strayWait), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.strays[w] != nil && !h.attempts.Closed() {
			h.settleNow(w, e)
		}
	})
}

// settleNow tells an attempt's end. REQUIRES: h.mu held.
func (h *Handler) settleNow(w *work, e *ended) {
	delete(h.strays, w)
	if h.stopping && e.isStray() {
		e.Result.Cause = executor.Vanished
		e.Result.Detail = "lost: its supervisor was signalled to end while its broker was stopped"
	}
	h.attempts.Settle(w, e.end())
}

// BrokerStops implements executor.Forewarned: no end by a signal makes an orphan from now on.
func (h *Handler) BrokerStops() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attempts.Closed() {
		return
	}
	h.stopping = true
	for w, e := range h.strays {
		h.settleNow(w, e)
	}
}
