package local

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// sighting is what a broker saw of an attempt whose supervisor died while it looked.
type sighting struct {
	began time.Time // when its process began; zero = nobody has said so
	gone  time.Time // when the supervisor was found dead
	task  executor.Task
}

// strayed is the detail of an attempt whose supervisor was signalled to end, and has no word of a broker for it.
const strayed = "orphaned: its supervisor was signalled to end, and not by its broker"

// unseen takes back that an attempt is an orphan if no broker looked when it ended: whoever ends a broker's whole
// control group, or a machine that goes down, signals all.
func (e *ended) unseen(restarted bool) {
	switch r := &e.Result; {
	case r.Cause != executor.Orphaned:
	case restarted:
		r.Cause, r.Detail = executor.Vanished, "lost: the machine was restarted"
	case e.isStray():
		r.Cause, r.Detail = executor.Vanished, "lost: its supervisor was signalled to end, while no broker looked"
	case r.Detail == cutOff:
		r.Cause, r.Detail = executor.Vanished, "lost: its network stack ended, or hung, while no broker looked"
	}
}

// orphan turns an attempt that vanished into an orphan if its task may have ended its supervisor: that began, and
// died while this broker and the machine stood, before the fence. It ran at most from its begin until its
// supervisor was found dead, by the wall's clock: the journal of an adopted one has no other.
func (h *Handler) orphan(e *ended, seen *sighting) *ended {
	if seen == nil || h.desk.IsFenced(seen.task) {
		return e
	}
	r := &e.Result
	if r.Started.IsZero() {
		r.Started = seen.began
	}
	if r.Started.IsZero() {
		return e // it had no time to compute anything
	}
	r.Cause, r.Run = executor.Orphaned, max(seen.gone.Sub(r.Started), time.Millisecond)
	r.Detail = "orphaned: its supervisor died while its broker and its machine stood"
	return e
}
