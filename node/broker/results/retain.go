package results

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/record"
)

// Unended returns the jobs with results of which it is not known that they have ended, in order.
func (b *Book) Unended() []uint64 {
	return b.numbers(func(j *job) bool { return j.EndedMs == 0 })
}

// Ended returns the jobs that ended before a moment, in order.
func (b *Book) Ended(before time.Time) []uint64 {
	return b.numbers(func(j *job) bool { return j.EndedMs != 0 && j.EndedMs < before.UnixMilli() })
}

func (b *Book) numbers(which func(*job) bool) (nums []uint64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for num, j := range b.jobs {
		if which(j) {
			nums = append(nums, num)
		}
	}
	slices.Sort(nums)
	return nums
}

// End notes that a job of a shape has ended now. counts says which attempt of a task counts, 0: nobody knows; what
// another one has left goes.
func (b *Book) End(num uint64, s Shape, counts func(task uint32) (attempt uint32)) error {
	<-b.loaded
	b.mu.Lock()
	j := b.jobs[num]
	if j == nil {
		b.mu.Unlock()
		return nil
	}
	j.EndedMs, j.Shape = b.now().UnixMilli(), s
	writes := []record.Write{record.PutRecord(record.BucketResults, record.Number(num), j.header)}
	j.tasks = slices.DeleteFunc(j.tasks, func(r node.TaskResult) bool {
		if a := counts(r.Task); a == 0 || a == r.Attempt {
			return false
		}
		b.unpin(num, j, &r)
		writes = append(writes, record.Remove(record.BucketResults, record.TaskKey(num, r.Task)))
		return true
	})
	b.mu.Unlock()
	return b.commit(writes)
}

// Drop forgets what a job has left.
func (b *Book) Drop(num uint64) error {
	<-b.loaded
	first, last := record.Number(num), record.TaskKey(num, math.MaxUint32)
	if err := b.journal.DeleteRange(record.BucketResults, first, last); err != nil {
		return fmt.Errorf("forget the results of job %d: %w", num, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[num]
	if j == nil {
		return nil
	}
	delete(b.jobs, num)
	for i := range j.tasks {
		b.store.Unpin(pinOf(num, &j.tasks[i]))
	}
	return nil
}
