// Package executor is the contract between a broker and what runs tasks: steps
// 4 and 6 of a job's way.
//
// A [Handler] is a resource driver: local processes (local), containers
// (container), Jobs of Kubernetes (kube). executortest is the suite that every
// handler passes. Handlers import this package and nothing of the broker.
package executor

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"
)

// Errors of a handler.
var (
	// ErrBusy: no room on the machine now; the assignment is declined.
	ErrBusy = errors.New("no room")
	// ErrUnfit: this handler can never run it (image without a container runtime …).
	ErrUnfit = errors.New("cannot run this task")
	// ErrLate: the attempt could outlive its fence if it began now; nothing runs.
	ErrLate = errors.New("too late to end before its fence")
	// ErrUnknownAttempt: the handler has no such attempt, or its files are gone.
	ErrUnknownAttempt = errors.New("unknown attempt")
	// ErrDamaged: the output was kept, and the disk no longer has what was written.
	ErrDamaged = errors.New("damaged on disk")
	// ErrUnreadable: the output cannot be read now, through the machine's or the disk's
	// fault; later it may be.
	ErrUnreadable = errors.New("cannot be read now")
)

// ID names one attempt forever; Token and Attempt fence it.
type ID struct {
	Job     string // "site-1.42"
	Task    uint32
	Attempt uint32
	Token   uint64
}

// String is also the name of the attempt's directory or object: it holds only
// [a-z0-9.-].
func (id ID) String() string {
	b := append(make([]byte, 0, len(id.Job)+32), id.Job...)
	b = strconv.AppendUint(append(b, '-'), uint64(id.Task), 10)
	b = strconv.AppendUint(append(b, '-'), uint64(id.Attempt), 10)
	b = strconv.AppendUint(append(b, '-'), id.Token, 10)
	return string(b)
}

// Resources of a task or machine.
type Resources struct {
	MilliCPU int64
	MemMiB   int64 // 0 = no limit for a task
	GPU      int64
}

// IndexVar is the variable by which a program learns its task's index: ID.Task,
// unless Env sets it, as the broker does for tasks of a job with indices of its own.
const IndexVar = "CLOUDSHARE_TASK"

// Task is what to run.
type Task struct {
	ID
	Owner, Site string // owner's and executor's site ids
	Machine     string // one of Capacity's machines
	Need        Resources
	Command     []string
	Image       string // "" = a bare command
	Env         map[string]string
	Network     bool          // its job asks for one
	Timeout     time.Duration // 0 = none
	// Fence, if not zero, is the absolute CLOCK_BOOTTIME moment (nanoseconds)
	// at which the attempt must be dead, unless Extend moved it: see Extender
	// and Bounded. 0 for a site's own work.
	Fence int64
	// Files are in its work folder when it begins, as copies of its user's own, and Outputs
	// are those that a [Collector] keeps of it. What Adopt returns has no Files: they were
	// there, or the attempt has not begun.
	Files   []File
	Outputs Outputs
}

// Machine is one machine a handler can run tasks on: totals, in use or not.
type Machine struct {
	Name string
	Resources
	// Shared says that others use it besides the broker, so that its capacity
	// is only partly exposed (the paper's 30 % threshold).
	Shared bool
	// Runs: the federation sends no other tasks here, and Start refuses them as
	// ErrUnfit.
	Runs Runs
	// Labels that the handler itself knows of the machine, as KEY=VALUE in the order of
	// the keys, with commas between them. The site's own win over them, and if both
	// together are more than a machine may have, these are left out.
	Labels string
	// Network is what tasks of other sites have here, if their jobs ask for one. A
	// site's own tasks have one whatever this says.
	Network Network
}

// Runs says which tasks a machine runs. The zero value is bare commands.
type Runs uint8

// What machines run.
const (
	RunsCommands Runs = iota // bare commands only
	RunsImages               // container images only: a cluster has nothing else
	RunsBoth
)

// Takes reports whether a task is of a kind that runs here.
func (r Runs) Takes(t Task) bool { return r == RunsBoth || (r == RunsImages) == (t.Image != "") }

// Cause of an attempt's end.
type Cause uint8

// The causes.
const (
	Exited   Cause = iota // by itself: see ExitCode and Signal
	TimedOut              // killed at its timeout
	Stopped               // killed by Stop
	Fenced                // killed at its fence: it counts as lost
	Vanished              // its site or its handler lost track of it: it counts as lost
	NoStart               // its own command could not be started: Detail says why; it counts as failed
	// Declined: its site could not start it (no processes, no descriptors, a cgroup,
	// a disk), and nothing of it ran. Detail says why; it is handed back like an
	// attempt that Start refused.
	Declined
	// Orphaned: what watched it (a supervisor, its container's first process) was gone
	// without a word, while broker, machine and engine stood; or what carried its packets
	// was. Its task may have done that to be computed for nothing, so it is charged for
	// Run, which the handler measures: from the start to the moment at which it found it
	// so. Nothing of it runs any more.
	Orphaned
)

// Result is how an attempt ended.
type Result struct {
	Cause    Cause
	ExitCode int
	Signal   int // 0 = none
	Started  time.Time
	Run      time.Duration // exec → end, on CLOCK_BOOTTIME
	Detail   string        // one line for people
	Usage    Usage         // unknown of what did not run, or vanished
}

// Succeeded reports whether it ended by itself, and well.
func (r *Result) Succeeded() bool { return r.Cause == Exited && r.ExitCode == 0 && r.Signal == 0 }

// Event is what a handler tells its broker.
type Event struct {
	ID      ID
	Started bool    // the process runs now
	Ended   *Result // or it ended
	Doing   string  // or this is done before it starts, one line for people
	// Capacity true: Capacity() may have changed; ID is empty.
	Capacity bool
}

// State of an attempt a handler has: running, or ended with Ended.
type State struct {
	Task
	Running bool
	// Started is when one that runs began, by the wall clock; zero = it has not, or
	// that is not known: an event will tell.
	Started time.Time
	Ended   *Result
}

// Demand tells a handler what waits in the federation that it could run, so
// that a pilot kind can ask its own scheduler for room. Level, not edge.
type Demand struct {
	Tasks    uint64
	MilliCPU int64
}

// A foreign attempt must be dead for certain before another site may run its
// task (architecture D4). A handler is an Extender or Bounded, or it runs its own
// site's work only. One that is both is taken for an Extender.

// Extender moves fences; handlers with a watchdog implement it.
type Extender interface {
	// Extend moves the fences of all foreign attempts to at least boottime.
	Extend(boottime int64) error
}

// Bounded is a handler whose attempts nobody may be there to stop, but that end
// by a limit of their own: a pod's active deadline, a batch job's wall time. The
// federation hears of the fence before the start and waits for it after a loss.
type Bounded interface {
	// Bound is how long after Start looked at the clock the attempt is certainly
	// dead, whatever happens to the broker, this handler and the site's network:
	// the timeout, and what waiting, starting and killing may add to it. False
	// if there is no such limit, as without a timeout. It depends on t only (not
	// on t.Fence) and answers at once.
	//
	// Start of a task whose fence is less than its bound away is ErrLate. It
	// looks as late as it can before the task is out of its hands: this process
	// may have been stopped for hours.
	Bound(t Task) (time.Duration, bool)
}

// Forewarned is a handler that hears that its broker begins to stop: well before Close, for a server that is shut down
// before it may wait for its clients.
type Forewarned interface {
	// BrokerStops tells it. Who stops a broker may signal all that it has begun, so such an end is no task's fault.
	BrokerStops()
}

// Weigher is a handler whose attempts write to the disk that the broker's data are on.
type Weigher interface {
	// Weigh returns about how many bytes a running attempt has there besides its output, as far as that is seen before
	// ctx ends; 0 of one that is not known or has ended.
	Weigh(ctx context.Context, id ID) int64
}

// Finder finds attempts by what users know of them; handlers that keep the logs
// of earlier attempts implement it.
type Finder interface {
	// Find returns the attempt's full name: ErrUnknownAttempt if it is not or no longer
	// here, ErrUnreadable if that cannot be told now, ErrDamaged.
	Find(job string, task, attempt uint32) (ID, error)
	// FindNewest returns the newest attempt that is here of each of the tasks.
	FindNewest(job string, tasks []uint32) []Newest
}

// Newest is the newest attempt of a task that a handler has.
type Newest struct {
	Attempt uint32 // 0 = it has none
	Err     error  // why that cannot be told: as of [Finder.Find]; nil = it can
}

// Handler runs tasks. All methods are safe for concurrent use.
type Handler interface {
	// Name is "local", "container", …
	Name() string
	// Status is one line for people, e.g. why memory limits are not enforced.
	Status() string
	// Capacity returns the machines, sorted by name.
	Capacity() []Machine
	// Adopt returns every attempt found from earlier lives of the broker,
	// running or ended and not yet forgotten. Called once, before any Start.
	// Ends of adopted running attempts arrive as events.
	Adopt(ctx context.Context) ([]State, error)
	// Start begins an attempt and returns when it is certain that it will be
	// found by Adopt, running or ended. It may take as long as its files take to copy; a
	// Stop meanwhile ends that, with an error. A repeat of a known ID is one run. After
	// an error nothing runs, now or later: a handler that cannot tell returns
	// nil, and an event with the end (Vanished at worst) follows.
	Start(ctx context.Context, t Task) error
	// Stop ends an attempt (TERM, grace, KILL of the whole group). The end
	// arrives as an event. Unknown or ended attempts: no error.
	Stop(ctx context.Context, id ID, why string) error
	// Forget drops what Adopt would return for an ended attempt; its logs stay
	// for the retention.
	Forget(ctx context.Context, id ID) error
	// Logs reads an attempt's output; stream is "stdout" or "stderr". With
	// follow it ends when the attempt has ended and all is read, or ctx ends.
	Logs(ctx context.Context, id ID, stream string, follow bool) (io.ReadCloser, error)
	// Published tells the demand of the federation.
	Published(d Demand)
	// Events is never closed before Close.
	Events() <-chan Event
	// Close detaches; attempts go on. End stops every attempt first.
	Close() error
	// End stops all attempts and waits until they are dead, for a broker that
	// shuts down together with its work.
	End(ctx context.Context) error
}
