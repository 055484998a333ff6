package form

import (
	"strings"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Event returns an event's form on the wire.
func Event(e *node.Event) wire.Event {
	out := wire.Event{
		ID: e.ID.String(), Index: e.Index, Kind: e.Kind.String(), Time: Moment(e.At), Durability: e.Durability,
		Count: e.Count, Attempt: e.Attempt, Token: e.Token, Site: e.Site, Machine: e.Machine,
		Outcome: e.End.String(), RunMs: e.RunMs, Delivered: e.Delivered, Reason: e.Reason,
	}
	if e.Time >= 0 {
		out.LogMs = &e.Time
	}
	if e.Job.Num > 0 {
		out.Job, out.Owner = e.Job.String(), e.Job.Site
	}
	if ofTask(e.Kind) {
		out.Task = &e.Task
	}
	if e.Need != (command.Resources{}) || e.Kind == fsm.EventSiteOffered {
		need := Resources(e.Need)
		out.Resources = &need
	}
	if wait := e.StartedMs - e.QueuedMs; e.StartedMs >= 0 && e.QueuedMs >= 0 && out.Task != nil {
		out.WaitMs = &wait
	}
	out.ExitCode, out.Signal = exitOf(e)
	out.Usage = AttemptUsage(&e.Measured)
	return out
}

// AttemptUsage returns the form of what an attempt has used, nil if nothing is known.
func AttemptUsage(m *command.Measured) *wire.AttemptUsage {
	if m.IsZero() {
		return nil
	}
	return &wire.AttemptUsage{
		PeakBytes: m.PeakBytes, UserMs: m.UserMs, SystemMs: m.SystemMs, InBytes: m.InBytes, OutBytes: m.OutBytes,
		Source: m.Source.String(),
	}
}

// ofTask reports whether events of a kind name a task.
func ofTask(k fsm.EventKind) bool {
	return k == fsm.EventHomeRan || strings.HasPrefix(k.String(), "task.")
}

// exitOf returns how the attempt's process ended, if that is what the event tells.
func exitOf(e *node.Event) (exit, signal *int) {
	switch e.End {
	case fsm.EndSucceeded, fsm.EndFailed, fsm.EndTimedOut:
	default:
		return nil, nil
	}
	code := int(e.ExitCode)
	switch {
	case e.Attempt == 0:
		return nil, nil
	case e.Signal != 0:
		code = int(e.Signal)
		return nil, &code
	}
	return &code, nil
}
