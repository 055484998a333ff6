package homejobs

import (
	"cmp"
	"slices"
	"sort"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

// priorityOf returns a job's priority, 0 if it was moved to the federation.
func (b *Book) priorityOf(num uint64) int32 {
	if j := b.jobs[num]; j != nil {
		return j.Spec.Priority
	}
	return 0
}

// await has tasks of a job wait for another attempt, behind those that wait already and have no lower priority.
func (b *Book) await(num uint64, tasks ...uint32) {
	if b.byHand[num] {
		return
	}
	list := make([]waitingTask, len(tasks))
	for i, task := range tasks {
		list[i] = waitingTask{num, task}
	}
	priority, behind := b.priorityOf(num), b.waiting[min(b.stuck, len(b.waiting)):]
	at := sort.Search(len(behind), func(i int) bool { return b.priorityOf(behind[i].num) < priority })
	b.waiting = slices.Insert(b.waiting, len(b.waiting)-len(behind)+at, list...)
}

// awaitAll is await of tasks of many jobs, in order: one by one each would move those behind it.
func (b *Book) awaitAll(tasks []waitingTask) {
	if len(tasks) > 0 {
		b.waiting = append(b.waiting, tasks...)
		b.stuck = 0
		b.sort()
	}
}

// unstick has the tasks looked at again that were passed over.
func (b *Book) unstick() {
	if b.stuck > 0 {
		b.stuck = 0
		b.sort()
	}
}

// sort puts what waits into order again, of which some was passed over before.
func (b *Book) sort() {
	slices.SortStableFunc(b.waiting, func(x, y waitingTask) int {
		return cmp.Compare(b.priorityOf(y.num), b.priorityOf(x.num))
	})
}

// leave takes a job's tasks out of those that wait.
func (b *Book) leave(num uint64) {
	b.unstick() // some of it may be among those that were passed over
	b.waiting = slices.DeleteFunc(b.waiting, func(w waitingTask) bool { return w.num == num })
}

// awaitQueued has all of a job's tasks wait that have no attempt and have not ended.
func (b *Book) awaitQueued(num uint64) {
	var tasks []uint32
	for i := range b.jobs[num].Tasks {
		if b.jobs[num].Tasks[i].State == fsm.Queued {
			tasks = append(tasks, uint32(i))
		}
	}
	b.await(num, tasks...)
}

// SetPriority gives a job another priority: what waits of it takes its place among the other tasks that wait. What runs
// goes on. REQUIRES: the job is known.
func (b *Book) SetPriority(num uint64, priority int32, fx *turn.Effects) {
	job := b.jobs[num]
	was := job.Spec.Priority
	if was == priority {
		return
	}
	b.leave(num)
	job.Spec.Priority = priority
	b.awaitQueued(num)
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketHome, record.Number(num), recordOf(job)))
	e := b.event(num, job)
	e.Kind, e.Count, e.Reason = fsm.EventJobPrioritized, job.Spec.Count, fsm.PriorityWords(was, priority)
	b.told = append(b.told, e)
}

// IsHeld reports whether a job is held by hand.
func (b *Book) IsHeld(num uint64) bool { return b.byHand[num] }

// SetHold begins no more tasks of a job, or lets them begin again. What runs goes on. Whoever calls it remembers it.
// REQUIRES: the job is known.
func (b *Book) SetHold(num uint64, hold bool) {
	switch {
	case hold == b.byHand[num] || b.jobs[num].Ended():
	case hold:
		b.leave(num)
		b.byHand[num] = true
	default:
		delete(b.byHand, num)
		b.awaitQueued(num)
	}
}
