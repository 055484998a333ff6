package watchdog

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// private is an error with details of what the task runs. Its text is without them: as an attempt's Detail or a
// decline's reason it goes to all members of the federation, of whom most may not know what is run.
type private struct {
	what  string // for all
	whole error
}

// Error implements error.
func (p *private) Error() string { return p.what }

// Unwrap returns the error that names all.
func (p *private) Unwrap() error { return p.whole }

// hide returns why a command does not run, in words that do not name it.
func hide(err error) error {
	errno, known := errors.AsType[unix.Errno](err)
	what := "its command cannot be run"
	switch {
	case errors.Is(err, errNoCommand), errno == unix.ENOENT:
		what = "its command is not there"
	case errno == unix.EACCES:
		what = "its command may not be run"
	case known:
		what += ": " + errno.Error()
	}
	return &private{what, err}
}

// maxTold bounds what is told in a task's stderr, in bytes.
const maxTold = 4096

// tellWhole writes what all members may not know of an attempt that did not begin where its output goes: who may read
// that may know it.
func (w *Watch) tellWhole(err error) {
	p, hidden := errors.AsType[*private](err)
	_, elsewhere := errors.AsType[*Trouble](err) // it begins at another site
	if !hidden || elsewhere {
		return
	}
	out := os.Stderr // the container's
	if w.Out != nil {
		out = w.Out.Files[1]
	}
	_, _ = fmt.Fprintf(out, "cloudshare: %.*s\n", maxTold, p.whole.Error())
}
