package sight

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// maxCancelled bounds of how many jobs it is known who had them cancelled.
const maxCancelled = 10_000

// cancelled says who had jobs of this site cancelled, since the broker's start: of the newest ones. The record of who
// did what has it for longer, for the operator. All methods may be called from any goroutine.
type cancelled struct {
	mu    sync.Mutex
	by    map[uint64]string // by job; guarded by mu. Invariant: its keys are those in order
	order []uint64          // oldest first; guarded by mu
}

// note says who is about to have a job cancelled: before it is, since an event tells of that at once. The first one
// counts. undo takes it back if that one was refused.
func (c *cancelled) note(num uint64, by string) (undo func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.by[num]; known {
		return func() {}
	}
	if c.by == nil {
		c.by = map[uint64]string{}
	}
	c.by[num], c.order = by, append(c.order, num)
	for len(c.order) > maxCancelled {
		delete(c.by, c.order[0])
		c.order = c.order[1:]
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := len(c.order) - 1; i >= 0; i-- { // it is among the newest
			if c.order[i] == num {
				c.order = slices.Delete(c.order, i, i+1)
				delete(c.by, num)
				return
			}
		}
	}
}

func (c *cancelled) of(num uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[num]
}

// operatorName is how an operator is named whose token has no user: no user has that name.
const operatorName = "the operator"

// nameOf names who asks.
func nameOf(a node.Asker) string {
	switch {
	case a.User == "":
		return operatorName
	case a.Operator:
		return a.User + ", an operator"
	}
	return a.User
}

// noteCancel notes that who asks has a whole job of this site cancelled. settle is told what became of it.
func (j *Rule) noteCancel(ctx context.Context, id command.JobID) (settle func(error)) {
	if id.Site != j.broker.Site() {
		return func(error) {}
	}
	undo := j.cancelled.note(id.Num, nameOf(node.AskerOf(ctx)))
	return func(err error) {
		if refused(err) {
			undo()
		}
	}
}

// refused reports whether a cancellation was refused. Whatever else ends the wait for it (there is no quorum, who asks
// hangs up, the token ends), it is carried out all the same.
func refused(err error) bool {
	return slices.ContainsFunc([]error{node.ErrEnded, node.ErrNotFound, node.ErrNotReady, node.ErrFull},
		func(why error) bool { return errors.Is(err, why) })
}

// CancelledBy returns who had a job of this site cancelled that was, "" if that is not known. It does not look at who
// asks: whoever may see all of the job may know.
func (j *Rule) CancelledBy(id command.JobID, state string) string {
	if id.Site != j.broker.Site() || state != fsm.TaskCancelled.String() {
		return ""
	}
	return j.cancelled.of(id.Num)
}
