package results

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
)

// List returns what tasks of a job have left, from a task on, so many at most, and the task to go on with, 0: there are
// no more. found: something is known of the job's results, or was.
func (b *Book) List(num uint64, from uint32, most int) (list []node.TaskResult, next uint32, found bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	j := b.jobs[num]
	if j == nil {
		return nil, 0, false
	}
	at, _ := j.find(from)
	end := min(at+most, len(j.tasks))
	if end < len(j.tasks) {
		next = j.tasks[end].Task
	}
	return slices.Clone(j.tasks[at:end]), next, true
}

// ShapeOf returns the shape of a job with results that has ended, if it is known.
func (b *Book) ShapeOf(num uint64) (s Shape, known bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if j := b.jobs[num]; j != nil {
		s = j.Shape
	}
	return s, s != Shape{}
}

// Has reports whether exactly that is kept of a task.
func (b *Book) Has(num uint64, r node.TaskResult) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	j := b.jobs[num]
	if j == nil {
		return false
	}
	at, found := j.find(r.Task)
	return found && j.tasks[at] == r
}

// Names returns the user of a job with results, and whether one of them names a blob. Before Load is over, that is
// node.ErrNotReady.
func (b *Book) Names(num uint64, h files.Hash) (user string, yes bool, err error) {
	select {
	case <-b.loaded:
	default:
		return "", false, fmt.Errorf("results are being looked up: %w", node.ErrNotReady)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	j := b.jobs[num]
	if j == nil {
		return "", false, nil
	}
	return j.User, j.blobs[h] > 0, nil
}
