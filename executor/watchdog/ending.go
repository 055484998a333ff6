package watchdog

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// Late returns the result of an attempt for which Plan.TooLate holds.
func Late() executor.Result {
	return executor.Result{Cause: executor.Fenced, Detail: "not started: the lease was about to end"}
}

// End is how the task's own process ended.
type End struct {
	Status syscall.WaitStatus
	Why    string // of a stop
	OOM    bool   // the kernel killed for memory
}

// Explain fills in how the process of t ended and why.
func (p *Plan) Explain(r *executor.Result, t executor.Task, e End) {
	if p.TermAt != 0 {
		r.Cause = p.Cause
	}
	switch {
	case e.Status.Signaled():
		r.Signal = int(e.Status.Signal())
		r.ExitCode = 128 + r.Signal
		r.Detail = "killed by signal " + unix.SignalName(e.Status.Signal())
	case e.Status.ExitStatus() != 0:
		r.ExitCode = e.Status.ExitStatus()
		r.Detail = fmt.Sprintf("exited with code %d", r.ExitCode)
	}
	switch r.Cause {
	case executor.TimedOut:
		r.Detail = fmt.Sprintf("killed: over its timeout of %s", t.Timeout)
	case executor.Stopped:
		r.Detail = "stopped: the broker asked for it"
		if e.Why != "" {
			r.Detail = "stopped: " + e.Why
		}
	case executor.Fenced:
		r.Detail = "killed: its site's lease ended"
	case executor.Exited:
		if r.ExitCode != 0 && e.OOM {
			r.Detail = OutOfMemory(t)
		}
	case executor.Vanished, executor.NoStart, executor.Declined, executor.Orphaned:
	}
}

// OutOfMemory says so of a task.
func OutOfMemory(t executor.Task) string {
	return fmt.Sprintf("killed: out of memory (limit %dMi)", t.Need.MemMiB)
}
