package local

import (
	"errors"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// cutOff is the detail of an attempt that lost its network. Its site's trouble fails no task; but what reads a task's
// packets may have died of them, so it is charged for what it ran, and a few of them end the task.
const cutOff = "orphaned: its network stack ended while it ran"

var errNoNetwork = errors.New("the process of its network has gone")

// seeNetwork has an attempt ended whose network has gone: what waits for an answer then may wait forever.
func (a *attempt) seeNetwork() {
	if a.cut || !a.networkLost() {
		return
	}
	a.cut = true
	if !a.told {
		a.ours = true
		a.Stop("")
	}
}

// blameNetwork makes an orphan of an attempt that ended by the loss of its network, or may have.
func (a *attempt) blameNetwork(r *executor.Result) {
	failed := r.Cause == executor.Exited && r.ExitCode != 0 || r.Cause == executor.TimedOut
	if r.Cause == executor.Stopped && a.ours && !a.told || failed && a.isCutOff() {
		r.Cause, r.Detail = executor.Orphaned, cutOff
	}
}

// isCutOff is networkLost for who has something to decide by it: when a stack ends, its interface goes some
// milliseconds before its socket, and a task may be as quick.
func (s *supervisor) isCutOff() bool {
	return s.network != 0 && (s.networkLost() || !sandbox.DeviceStands())
}
