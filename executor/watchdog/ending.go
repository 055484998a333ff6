package watchdog

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// Late returns the result of an attempt for which plan.tooLate holds.
func Late() executor.Result {
	return executor.Result{Cause: executor.Fenced, Detail: "not started: the lease was about to end"}
}

// End is how the task's own process ended.
type End struct {
	Status syscall.WaitStatus
	Why    string // of a stop
	OOM    bool   // the kernel killed for memory
	Over   string // the bound for which it was killed, that it has gone over
	MemMiB int64  // its limit, where the task asked for none; 0 = what it asked for
	// Unasked: if it was stopped, nobody has asked for that, and a bound that it has gone over is why it ended.
	Unasked bool
	// Group is what the attempt's cgroup has counted; what it does not know is taken from
	// the processes that were reaped.
	Group GroupUsage
}

// explain fills in how the process of t ended and why.
func (p *plan) explain(r *executor.Result, t executor.Task, e End) {
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
	if e.Over != "" && (r.Cause == executor.Exited || e.Unasked && r.Cause == executor.Stopped) {
		r.Cause = executor.Exited
		r.Signal, r.ExitCode, r.Detail = int(unix.SIGKILL), 128+int(unix.SIGKILL), "killed: "+e.Over
		return
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
			r.Detail = OutOfMemory(t, e.MemMiB)
		}
	case executor.Vanished, executor.NoStart, executor.Declined, executor.Orphaned:
	}
}

// OutOfMemory says so of a task; share is its limit in MiB if it asked for none, 0 = it had none.
func OutOfMemory(t executor.Task, share int64) string {
	if t.Need.MemMiB == 0 && share > 0 {
		return fmt.Sprintf("killed: out of memory (limit %dMi, a share by its cores: ask for memory to have more)", share)
	}
	return fmt.Sprintf("killed: out of memory (limit %dMi)", t.Need.MemMiB)
}
