package attempts

import "errors"

// Errors of handlers besides the contract's.
var (
	// ErrClosed: the handler was closed.
	ErrClosed = errors.New("handler closed")
	// ErrInUse: another broker holds the directory.
	ErrInUse = errors.New("directory in use by another broker")
	// ErrNotAdopted: Start before Adopt; the machine's use is not known yet.
	ErrNotAdopted = errors.New("start before adopt")
	// ErrRunning: Forget of an attempt that has not ended.
	ErrRunning = errors.New("attempt still running")
	// ErrTorn: a file that a crash of the machine cut off; see ReadNote.
	ErrTorn = errors.New("not whole")
)
