package homejobs

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

// jobRecord is what the journal holds of a job.
type jobRecord struct {
	command.JobSpec
	QueuedMs int64 `json:"queued_ms,omitempty"` // 0 = since it was submitted
}

func recordOf(j *Job) jobRecord {
	r := jobRecord{JobSpec: j.Spec, QueuedMs: j.queuedMs}
	if r.QueuedMs == r.CreatedMs {
		r.QueuedMs = 0
	}
	return r
}

// Recover reads the jobs and tasks of an earlier life.
func (b *Book) Recover(j record.Reader) error {
	err := j.Each(record.BucketHome, func(k, v []byte) error {
		var r jobRecord
		if err := json.Unmarshal(v, &r); err != nil {
			return fmt.Errorf("home job %d: %w", record.DecodeNumber(k), err)
		}
		job := &Job{Spec: r.JobSpec, Tasks: make([]Task, r.Count), queuedMs: cmp.Or(r.QueuedMs, r.CreatedMs)}
		b.add(record.DecodeNumber(k), job)
		return nil
	})
	if err != nil {
		return err
	}
	err = j.Each(record.BucketTasks, b.recoverTask)
	for _, num := range b.order {
		switch job := b.jobs[num]; {
		case job.Ended():
			b.ended = append(b.ended, num)
		case !job.isUntouched() && !job.everRan():
			b.unsure[num] = true
		}
	}
	return err
}

func (b *Book) recoverTask(k, v []byte) error {
	if len(k) != 12 {
		return fmt.Errorf("home task %x: malformed key", k)
	}
	job := b.jobs[record.DecodeNumber(k[:8])]
	task := binary.BigEndian.Uint32(k[8:])
	if job == nil || int(task) >= len(job.Tasks) {
		return fmt.Errorf("home task %x has no job", k)
	}
	if err := json.Unmarshal(v, &job.Tasks[task]); err != nil {
		return fmt.Errorf("home task %x: %w", k, err)
	}
	if state := job.Tasks[task].State; state > fsm.Withdrawn {
		return fmt.Errorf("home task %x: unknown state %d", k, state)
	}
	job.changed(task)
	return nil
}

// Requeue gives home tasks without an attempt another one; those that were
// to be stopped have stopped.
func (b *Book) Requeue(fx *turn.Effects) {
	live := map[executor.ID]bool{}
	for id := range b.attempts.All() {
		live[executor.ID{Job: id.Job, Task: id.Task, Attempt: id.Attempt}] = true
	}
	queued := map[waitingTask]bool{}
	for _, w := range b.waiting {
		queued[w] = true
	}
	var stopped []uint64 // jobs with such tasks
	var again []waitingTask
	for _, num := range b.order {
		job := b.jobs[num]
		name := command.JobID{Site: b.site, Num: num}.String()
		for i := range job.Tasks {
			t, w := &job.Tasks[i], waitingTask{num, uint32(i)}
			if t.State.Ended() || queued[w] || live[executor.ID{Job: name, Task: w.task, Attempt: t.Attempt}] {
				continue
			}
			if t.State == fsm.Stopping {
				t.State, t.EndedMs = fsm.TaskCancelled, b.now.Wall.UnixMilli()
				b.write(num, w.task, fx)
				stopped = append(stopped, num)
				continue
			}
			t.State = fsm.Queued
			job.changed(w.task)
			if !b.byHand[num] {
				again = append(again, w)
			}
		}
	}
	b.awaitAll(again)
	for _, num := range slices.Compact(stopped) { // only now: it may drop jobs from the order
		b.retire(num, fx)
	}
}
