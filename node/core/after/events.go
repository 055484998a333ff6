package after

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Held jobs are not in the log, so only their own broker emits their events, each after the record of what it reports
// is synced.

// SetEmit has events of held jobs given to those who read, once they are durable.
func (b *Book) SetEmit(tell func([]node.Event)) { b.emit = tell }

func (b *Book) event(j *Job, kind fsm.EventKind) node.Event {
	return node.Event{
		Event: fsm.Event{Kind: kind, Job: b.id(j.Spec.Num), Count: j.Spec.Count, Need: j.Spec.Need}, At: b.now.Wall,
	}
}

func (b *Book) emitHeld(j *Job) {
	e := b.event(j, fsm.EventJobHeld)
	e.Reason = b.WaitsFor(j)
	b.told = append(b.told, e)
}

func (b *Book) emitReleased(j *Job) { b.told = append(b.told, b.event(j, fsm.EventJobReleased)) }

func (b *Book) emitPriority(j *Job, was int32) {
	e := b.event(j, fsm.EventJobPrioritized)
	e.Reason = fsm.PriorityWords(was, j.Spec.Priority)
	b.told = append(b.told, e)
}

// emitEnded tells that all tasks have ended, by ranges of their indices, and the job with them.
func (b *Book) emitEnded(j *Job) {
	n := jobspec.NumberingOf(j.Spec.Payload, j.Spec.Count)
	for from := uint32(0); from < j.Spec.Count; {
		e := b.event(j, fsm.EventTaskEnded)
		e.Task, e.Count = n.Run(from)
		e.Count = min(e.Count, j.Spec.Count-from)
		e.End, e.Reason = fsm.EndCancelled, j.Reason
		b.told = append(b.told, e)
		from += e.Count
	}
	e := b.event(j, fsm.EventJobEnded)
	e.End = fsm.EndCancelled
	b.told = append(b.told, e)
}

// FlushEvents hands what was told to the feed once this turn's writes are durable.
func (b *Book) FlushEvents(fx *turn.Effects) {
	if b.emit == nil {
		b.told = b.told[:0]
		return
	}
	told := b.told
	if b.told = nil; len(told) > 0 {
		fx.Replies = append(fx.Replies, func() { b.emit(told) })
	}
}
