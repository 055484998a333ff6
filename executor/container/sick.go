package container

import (
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// An engine that answers and yet starts no container (its disk is full, a network
// of the configuration is not there) would take one task after the other and lose
// it, faster than any other site could run it. So it offers nothing for a while
// after maxFailures in a row, and after each further one.
const (
	maxFailures = 3
	minSick     = 5 * time.Second
	maxSick     = 5 * time.Minute
)

// health is what the engine has made of the latest starts.
type health struct {
	failures int           // in a row
	pause    time.Duration // after the next one
	sick     error         // why nothing is offered for now; nil = it is
}

// failed: the engine did not make or start a container, through no fault of the
// task's.
func (h *Handler) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.health.failures++
	if h.health.failures < maxFailures || h.health.sick != nil || h.attempts.Closed() {
		return
	}
	pause := max(h.health.pause, minSick)
	h.health.pause = min(2*pause, maxSick)
	h.health.sick = fmt.Errorf("no container could be started, tried again in %s: %w", pause, err)
	h.attempts.Events.Put(executor.Event{Capacity: true})
	h.cfg.Logger.Warn().Err(err).Int("failures", h.health.failures).Stringer("pause", pause).
		Msg("the container engine answers, but starts no container: nothing is offered for a while")
	time.AfterFunc(pause, h.convalesce)
}

// convalesce offers what there is again.
func (h *Handler) convalesce() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.health.sick = nil
	h.attempts.Events.Put(executor.Event{Capacity: true})
}

// missing says why nothing can be started now; nil = something can.
// REQUIRES: h.mu held.
func (h *Handler) missing() error {
	if h.away != nil {
		return h.away
	}
	return h.health.sick
}
