package facade

import (
	"fmt"
	"sync"

	"github.com/cloudshare/cloudshare/node/coord"
)

// life is how a log stops by itself.
type life struct {
	once   sync.Once
	failed chan struct{}
	err    error // set before failed is closed
}

// newLife is the life of a log that opens.
func newLife() *life { return &life{failed: make(chan struct{})} }

// Fail ends it for a reason. Only the first one counts: it says whether this was it.
func (l *life) Fail(err error) (first bool) {
	l.once.Do(func() {
		first, l.err = true, err
		close(l.failed)
	})
	return first
}

// Failed is closed when the log has stopped by itself.
func (l *life) Failed() <-chan struct{} { return l.failed }

// Err returns why, or nil.
func (l *life) Err() error {
	select {
	case <-l.failed:
		return l.err
	default:
		return nil
	}
}

// Closed returns the error of a call to a log that is closed, with what it failed of.
func (l *life) Closed() error {
	if err := l.Err(); err != nil {
		return fmt.Errorf("%w: %w", coord.ErrClosed, err)
	}
	return coord.ErrClosed
}
