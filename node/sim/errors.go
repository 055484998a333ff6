package sim

import "errors"

// Errors of the simulator; each comes with what it is about and what to do.
var (
	// ErrBadCase is wrapped by what Validate returns.
	ErrBadCase = errors.New("cannot be simulated")
	// ErrNoWork means that no job of a log ever ran.
	ErrNoWork = errors.New("no job in it has a submission, a run time and processors")
	// ErrTooShort and ErrTooFew: no period of such a log can be drawn.
	ErrTooShort = errors.New("the log is shorter than a period")
	ErrTooFew   = errors.New("too few users")
	// ErrStuck means that work is left that will never start.
	ErrStuck = errors.New("nothing moves any more")
	// ErrUnequal means that the theorem of equal tasks does not hold.
	ErrUnequal = errors.New("tasks are not all one core wide and equally long")
	// ErrTooLarge means waits whose Shapley value would not fit 64 bits.
	ErrTooLarge = errors.New("waits are too long to be compared exactly")
	// ErrOtherStudy means that a results file belongs to another study.
	ErrOtherStudy = errors.New("the file holds results of another study")
	// ErrBusy means that a results file is being written by another process.
	ErrBusy = errors.New("another study writes there now: wait for its end, or use another folder")
	// ErrTheorem means that a policy's total wait is not the counted one.
	ErrTheorem = errors.New("the total wait depends on the policy")

	errFolder = errors.New("it is a folder: name the logs in it")
	ErrNoFile = errors.New("it is no regular file: use another folder")
)
