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
	for num, job := range b.jobs {
		if err := job.check(); err != nil {
			return fmt.Errorf("home job %d: %w", num, err)
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
