package homejobs

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
)

// Check returns an error if lists, counts and sums of the book are not those of its jobs.
// Tests ask after every turn.
func (b *Book) Check() error {
	if want := slices.Sorted(maps.Keys(b.jobs)); !slices.Equal(want, b.order) {
		return fmt.Errorf("jobs at home are %v, listed are %v", want, b.order)
	}
	for _, w := range b.waiting[:b.stuck] {
		job := b.jobs[w.num]
		if job == nil || job.Tasks[w.task].State != fsm.Queued || job.Tasks[w.task].Reason != job.NoPlace() ||
			b.machines.FitsEmpty(&job.Spec, job.refusers()...) {
			return fmt.Errorf("home task %v is passed over: %+v", w, job)
		}
	}
	if err := b.checkOrder(); err != nil {
		return err
	}
	for num, job := range b.jobs {
		if err := job.check(); err != nil {
			return fmt.Errorf("home job %d: %w", num, err)
		}
	}
	return nil
}

// checkOrder compares the order of what waits with its jobs' priorities, and what is held with what waits.
func (b *Book) checkOrder() error {
	behind := b.waiting[b.stuck:]
	for i, w := range behind {
		if i > 0 && b.priorityOf(w.num) > b.priorityOf(behind[i-1].num) {
			return fmt.Errorf("home task %v waits behind %v of a lower priority", w, behind[i-1])
		}
		if b.byHand[w.num] {
			return fmt.Errorf("home task %v waits, and its job is held by hand", w)
		}
	}
	for num := range b.byHand {
		if job := b.jobs[num]; job == nil || job.Ended() {
			return fmt.Errorf("job %d is held by hand, and is not open", num)
		}
	}
	return nil
}

func (j *Job) check() error {
	var counts fsm.Counts
	for i := range j.Tasks {
		counts[j.Tasks[i].State]++
	}
	if counts != j.counts {
		return fmt.Errorf("tasks are %v, counted %v", counts, j.counts)
	}
	if held := j.summary; j.summed {
		j.summed = false
		if sum, _ := j.Sum(); held != sum {
			return fmt.Errorf("summed up as %+v, want %+v", held, sum)
		}
	}
	return nil
}
