package core

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const (
	// MaxCancelTasks is how many tasks of one job one request may name to cancel.
	MaxCancelTasks = 1000
	// maxTaskCancels bounds the cancellations of single tasks that wait for the
	// quorum, over all jobs.
	maxTaskCancels = 16 << 10
)

// cancelTasks ends some tasks of one of this site's jobs.
func (b *cancelBook) cancelTasks(ev CancelEvent, s StateReader, fx *Effects) {
	id := command.JobID{Site: b.site, Num: ev.Num}
	refuse := func(err error) {
		fx.Replies = append(fx.Replies, func() { ev.Reply(fmt.Errorf("cancel tasks of job %s: %w", id, err)) })
	}
	if job := b.home.Find(ev.Num); job != nil {
		positions, err := positionsOf(&job.Spec, ev.Tasks)
		if err == nil {
			err = b.home.CancelTasks(ev.Num, positions, ev.At, fx)
		}
		if err != nil {
			refuse(err)
			return
		}
		fx.Replies = append(fx.Replies, func() { ev.Reply(nil) })
		return
	}
	if b.after.Find(ev.Num) != nil { // one that waits for others has its own way
		refuse(node.ErrEnded)
		return
	}
	if b.pubs.IsSent(ev.Num) {
		refuse(fmt.Errorf("%w: the job is on its way to the federation: try again, or cancel the whole job", node.ErrNotReady))
		return
	}
	job, ok := s.Job(id)
	if !ok {
		refuse(cancelError(id, command.UnknownJob))
		return
	}
	positions, err := positionsOf(&job.Spec, ev.Tasks)
	switch {
	case err != nil:
		refuse(err)
	case b.tasks+len(positions) > maxTaskCancels:
		refuse(fmt.Errorf("%w: %d tasks of this site wait to be cancelled already: try again when there is a quorum", node.ErrFull, b.tasks))
	default:
		b.orderTasks(id, positions, b.placeOf(ev.At), ev.Reply)
	}
}

// positionsOf turns indices into positions; each must be one of the job's tasks.
func positionsOf(js *command.JobSpec, tasks jobspec.Indices) ([]uint32, error) {
	n := jobspec.NumberingOf(js.Payload, js.Count)
	positions := make([]uint32, 0, min(tasks.Len(), js.Count))
	for index := range tasks.All() {
		at := n.Position(index)
		if at >= n.Size() || n.Index(at) != index {
			return nil, fmt.Errorf("it has no task %d: %w", index, node.ErrNotFound)
		}
		positions = append(positions, at)
	}
	return positions, nil
}

// orderTasks has tasks of a job in the state ended, and replies once the
// outcome of all is known: nil if one of them had not ended yet.
func (b *cancelBook) orderTasks(id command.JobID, positions []uint32, at string, reply func(error)) {
	b.tasks += len(positions)
	left, open := len(positions), 0
	var failed error
	for _, position := range positions {
		b.out.Add(&command.Cancel{Job: id, Task: int64(position), At: at},
			func(r command.Result, _ StateReader, fx *Effects) {
				b.tasks--
				left--
				switch r.Code {
				case command.OK:
					open++
				case command.AlreadyEnded:
				default:
					failed = cancelError(id, r.Code)
				}
				switch {
				case left > 0:
					return
				case open == 0 && failed == nil:
					failed = cancelError(id, command.AlreadyEnded)
				case open > 0:
					failed = nil
				}
				outcome := failed
				fx.Replies = append(fx.Replies, func() { reply(outcome) })
			})
	}
}
