package carry

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
)

// fault is why a task's files were not sent.
type fault struct {
	Bound   *executor.OutputBoundError `json:"bound,omitempty"`
	Changed string                     `json:"changed,omitempty"`
	Other   string                     `json:"other,omitempty"`
}

// maxWords bounds the words of a fault, in bytes.
const maxWords = 1 << 10

// faultOf takes what a collection has returned.
func faultOf(err error) *fault {
	if bound, ok := errors.AsType[*executor.OutputBoundError](err); ok {
		return &fault{Bound: bound}
	}
	words := err.Error()
	words = words[:min(len(words), maxWords)]
	if errors.Is(err, executor.ErrOutputChanged) {
		return &fault{Changed: words}
	}
	return &fault{Other: words}
}

// err returns it as the collection did.
func (f *fault) err() error {
	switch {
	case f.Bound != nil:
		return f.Bound
	case f.Changed != "":
		return fmt.Errorf("%w: %s", executor.ErrOutputChanged, f.Changed)
	}
	return fmt.Errorf("%w: in its pod: %s", executor.ErrUnreadable, f.Other)
}
