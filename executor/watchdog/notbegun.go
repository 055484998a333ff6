package watchdog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// Trouble is a reason why an attempt could not begin that is its site's: no task is
// to blame for it.
type Trouble struct{ Cause error }

// Error implements error.
func (t *Trouble) Error() string { return t.Cause.Error() }

// Unwrap returns the cause.
func (t *Trouble) Unwrap() error { return t.Cause }

// NotBegun returns the result of an attempt of which no process ran: Declined if a Trouble
// is why, else NoStart with a shell's codes. Its Detail does not name what was to run.
func NotBegun(err error) executor.Result {
	if trouble, ok := errors.AsType[*Trouble](err); ok {
		return executor.Result{Cause: executor.Declined, Detail: "not started, by its site's trouble: " + trouble.Error()}
	}
	r := executor.Result{Cause: executor.NoStart, ExitCode: 126, Detail: err.Error()}
	if errors.Is(err, errNoCommand) || errors.Is(err, os.ErrNotExist) {
		r.ExitCode = 127
	}
	return r
}

// ownErrors are those of a fork and exec that a command has by itself: it is not
// there, may not or cannot be run, or its arguments are too long. All others (no
// processes, no memory, no descriptors, a cgroup that is gone, a disk) are the site's.
var ownErrors = []error{
	unix.ENOENT, unix.EACCES, unix.ENOEXEC, unix.ENOTDIR, unix.EISDIR, unix.ELOOP, unix.ENAMETOOLONG,
	unix.E2BIG, unix.EINVAL, unix.ETXTBSY, unix.ELIBBAD, unix.ELIBACC,
}

func isOwnError(err error) bool {
	return slices.ContainsFunc(ownErrors, func(own error) bool { return errors.Is(err, own) })
}

// tinyMiB is a limit of memory under which a program may not even be loaded.
const tinyMiB = 16

// StartError says why the command of t, which is at file, was not started: it is a
// Trouble unless the task's own command or limit is to blame.
func StartError(t executor.Task, file string, err error) error {
	if trouble, ok := errors.AsType[*Trouble](err); ok {
		return trouble
	}
	said := hide(fmt.Errorf("start %s: %w", t.Command[0], err))
	switch tiny := t.Need.MemMiB > 0 && t.Need.MemMiB <= tinyMiB; {
	case isOwnError(err),
		// The kernel says so, too, of a program that is cut off.
		errors.Is(err, unix.EIO) && readable(file),
		errors.Is(err, unix.ENOMEM) && tiny:
		return said
	}
	return &Trouble{said}
}

// readable reports whether the disk gives a whole file.
func readable(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err == nil
}
