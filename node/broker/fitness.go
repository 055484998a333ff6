package broker

import (
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

// A leader judges the other sites by commands, and a command has a number of its
// site's registered incarnation. So a leader that is not registered (it was declared
// lost and cannot end a foreign task, say) judges nobody: a killed site would keep
// its tasks. Such a broker says that it is not fit to lead, and the log gives the
// leadership to a voter that is.

// fitness is whether this broker could judge others as the leader. It is owned by
// leaderWatch.run.
type fitness struct {
	unfit time.Time // since when it is outside; zero = it is not
}

// registerPatience returns how long a broker may be outside before it counts as unfit:
// one that has just started, or was just lost, registers within a fraction of it.
// A leader judges nobody for the first lease anyway.
func registerPatience(t node.Timing) time.Duration { return max(t.Lease/4, time.Second) }

// unfitReason returns why the broker is unfit now, "" if it is not.
func (f *fitness) unfitReason(outside error, now time.Time, patience time.Duration) string {
	if outside == nil {
		f.unfit = time.Time{}
		return ""
	}
	if f.unfit.IsZero() {
		f.unfit = now
	}
	if now.Sub(f.unfit) < patience || mutate.On("no-unregistered-handover") {
		return ""
	}
	return outside.Error()
}
