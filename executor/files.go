package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of the files that travel with a task.
const (
	// MaxFiles bounds the files that one task gets, and those that one leaves.
	MaxFiles = 100_000
	// MaxPath bounds a file's path, in bytes.
	MaxPath = 1024
	// MaxPaths bounds the paths of all files that one task leaves, together, in bytes.
	MaxPaths = 32 << 20
)

// File is one that a task finds when it begins. Its bytes are those of Source, or Content
// if Source is "".
type File struct {
	// Path is where the task finds it: relative to its work folder, with slashes. In
	// containers it may be absolute. See [CheckPath].
	Path string
	// Source is the path of a regular file of this machine, which the broker keeps
	// unchanged until the attempt has ended. Nothing of the task ever has that file
	// itself: what it could change others would get.
	Source     string
	Content    []byte
	Executable bool
}

// Outputs are the files that a task is to leave. The zero value is none.
type Outputs struct {
	Paths    []string // globs, each of which must match: see [ParseGlob]
	Optional []string // globs of what may be missing
	MaxBytes int64    // of all files together, as long as they are; 0 = no bound
	MaxFiles int      // 0 = the package's
	When     When
}

// Wanted reports whether there are any.
func (o Outputs) Wanted() bool { return len(o.Paths)+len(o.Optional) > 0 }

// Kept reports whether an attempt that ended so leaves files: it ran here to its end, and
// nobody else runs its task again.
func (o Outputs) Kept(r Result) bool {
	if !o.Wanted() || r.Started.IsZero() {
		return false
	}
	switch r.Cause {
	case Exited:
		return o.When == WhenAlways || r.Succeeded()
	case TimedOut, Stopped:
		return o.When == WhenAlways
	case Fenced, Vanished, NoStart, Declined, Orphaned:
	}
	return false
}

// When says after which ends a task's files are wanted. The zero value is after all of its own.
type When uint8

// The ends.
const (
	WhenAlways  When = iota // also of one that failed, timed out or was stopped
	WhenSuccess             // of exit code 0 only
)

// Collector is a handler that keeps the files of ended attempts and gives them out.
type Collector interface {
	// Collect gives the sink each file that an ended attempt has left and want names, in
	// the order of their paths, name by name: what is below a folder stands together. It
	// may be repeated until Forget, also by a later broker. An attempt for whose end
	// want keeps nothing ([Outputs.Kept]) has no files, which is no error. Of what the task's own Outputs do not
	// name a handler need keep nothing, so want is those, or less; what had to match may be optional now.
	//
	// Before the sink gets the first file: [*MissingOutputError] and [*OutputBoundError].
	// ErrUnknownAttempt: there is none, or it was forgotten. ErrUnreadable: the machine's
	// fault. [ErrOutputChanged]. What the sink returned.
	Collect(ctx context.Context, id ID, want Outputs, sink OutputSink) error
}

// OutputFile is a regular file that a task has left.
type OutputFile struct {
	Path       string // relative to the work folder, UTF-8
	Size       int64
	Executable bool // of all its other rights nothing travels
}

// OutputSink receives what Collect finds.
type OutputSink interface {
	// File receives one; r gives exactly f.Size bytes, or an error. The sink need not
	// read it, and does not keep r.
	File(f OutputFile, r io.Reader) error
	// Skipped hears what matches and cannot travel (a link, a device, a name that is not
	// UTF-8), and why, for people. It hears of [MaxSkipped] at most. name may be any bytes.
	Skipped(name, why string)
}

// MaxSkipped bounds what an [OutputSink] hears of files that cannot travel.
const MaxSkipped = 100

// ErrOutputChanged says that a file of an ended attempt changed while it was read.
var ErrOutputChanged = errors.New("changed while it was collected")

// MissingOutputError says that a task did not leave what it had to.
type MissingOutputError struct {
	Glob string
	Why  string // "" = nothing matches
}

// Error implements error.
func (e *MissingOutputError) Error() string {
	if e.Why == "" {
		return fmt.Sprintf("output %q is missing: the task left no such file", e.Glob)
	}
	return fmt.Sprintf("output %q is missing: %s", e.Glob, e.Why)
}

// OutputBoundError says that a task left more than it may.
type OutputBoundError struct {
	What string // "bytes", "files" or "bytes of paths"
	Most int64
}

// Error implements error.
func (e *OutputBoundError) Error() string {
	return fmt.Sprintf("its outputs are more than %d %s: name fewer files, or raise the bound of its outputs", e.Most, e.What)
}

// UsageSource is by what usage was measured.
type UsageSource uint8

// The sources.
const (
	UsageUnknown UsageSource = iota
	// UsageRusage: what the kernel told at each process's end. Memory is that of the
	// largest process, and at least that of who forked it. Time misses that of processes
	// whose parents ignored their end.
	UsageRusage
	UsageCgroup // the attempt's cgroup: all of its processes together, with their page cache
)

// usageSources are the words for people.
var usageSources = [...]string{UsageUnknown: "unknown", UsageRusage: "rusage", UsageCgroup: "cgroup"}

// String returns its word.
func (s UsageSource) String() string {
	if int(s) < len(usageSources) {
		return usageSources[s]
	}
	return usageSources[UsageUnknown]
}

// Usage is what an attempt has used. A field is 0 where its source is unknown.
type Usage struct {
	PeakMemory   int64 // bytes
	User, System time.Duration
	MemoryFrom   UsageSource
	TimeFrom     UsageSource
}
