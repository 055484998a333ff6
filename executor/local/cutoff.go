package local

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// cutOff is the detail of an attempt that lost its network. Its site's trouble fails no task; but what reads a task's
// packets may have died of them, so it is charged for what it ran, and a few of them end the task.
const cutOff = "orphaned: its network stack ended, or hung, while it ran"

var errNoNetwork = errors.New("the process of its network has gone, or hangs")

// seeNetwork has an attempt ended whose network has gone, or hangs: what waits for an answer then may wait forever.
func (a *attempt) seeNetwork(now int64) {
	if a.cut || !a.networkLost() && !a.askStack(now) {
		return
	}
	a.cut = true
	if !a.told && !a.hasEnded() {
		a.ours = true
		a.Stop("")
	}
}

// hasEnded reports whether the task's process has, which the loop may not have heard yet: then it did so by itself.
func (a *attempt) hasEnded() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, a.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// blameNetwork makes an orphan of an attempt that ended by the loss of its network, or may have. One that has gone over
// a bound of its own, of scratch or of memory, has not.
func (a *attempt) blameNetwork(r *executor.Result) {
	if a.over {
		return
	}
	failed := r.Cause == executor.Exited && r.ExitCode != 0 && !a.oom || r.Cause == executor.TimedOut
	if r.Cause == executor.Stopped && a.ours && !a.told || failed && (a.isCutOff() || !a.stackAnswersNow()) {
		r.Cause, r.Detail = executor.Orphaned, cutOff
	}
}

// isCutOff is networkLost for who has something to decide by it: when a stack ends, its interface goes some
// milliseconds before its socket, and a task may be as quick.
func (s *supervisor) isCutOff() bool {
	return s.network != 0 && (s.networkLost() || !sandbox.DeviceStands())
}
