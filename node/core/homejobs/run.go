package homejobs

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

// keep takes a job as a home job; its tasks wait.
func (b *Book) keep(js command.JobSpec, fx *turn.Effects) {
	job := &Job{Spec: js, Tasks: make([]Task, js.Count), queuedMs: b.now.Wall.UnixMilli()}
	b.add(js.Num, job)
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketHome, record.Number(js.Num), recordOf(job)))
	b.emitJobEvent(fsm.EventJobSubmitted, js.Num)
}

// Run starts a job here; the record and its attempts are synced together.
func (b *Book) Run(js command.JobSpec, places []string, token uint64, fx *turn.Effects) {
	b.keep(js, fx)
	for i, place := range places {
		b.startTask(js.Num, uint32(i), place, token, fx)
	}
}

// startTask begins the next attempt of a home task.
func (b *Book) startTask(num uint64, task uint32, place string, token uint64, fx *turn.Effects) {
	job := b.jobs[num]
	t := &job.Tasks[task]
	if !job.taken {
		b.unsure[num] = true
	}
	t.State, t.Machine, t.Reason, t.back = fsm.Assigned, place, "", false
	t.Measured, t.measures = nil, false
	t.Attempt++
	// After a restart the state here may be older than the one of the last
	// attempt; (token, attempt) only grows all the same.
	token = max(token, t.Token)
	t.Token = token
	id := executor.ID{
		Job: b.attempts.NameOf(command.JobID{Site: b.site, Num: num}), Task: task, Attempt: t.Attempt,
		Token: token,
	}
	rec := attempts.Record{ID: id, Home: true, Machine: place, Need: executor.Resources(job.Spec.Need)}
	run, err := b.attempts.StartOf(rec, b.site, job.Spec.TimeoutMs, job.Spec.Payload)
	if !job.Spec.Delivers {
		run.Task.Outputs = executor.Outputs{}
	}
	if a, end := b.attempts.Start(rec, run, err, fx); end != nil {
		b.HandleEnded(a, *end, fx)
	}
	b.write(num, task, fx)
}

func (b *Book) write(num uint64, task uint32, fx *turn.Effects) {
	b.jobs[num].changed(task)
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketTasks, record.TaskKey(num, task),
		b.jobs[num].Tasks[task]))
	b.emitTaskEvent(num, task)
}

// Queue takes a job, all tasks of which wait.
func (b *Book) Queue(js command.JobSpec, fx *turn.Effects) {
	b.keep(js, fx)
	tasks := make([]uint32, js.Count)
	for i := range tasks {
		tasks[i] = uint32(i)
	}
	b.await(js.Num, tasks...)
}

// Start gives waiting home tasks their next attempt, in order, as long as
// there is room, and returns how many it looked at. What no machine here could
// ever take is passed over, so that it holds up nobody, and not looked at again
// until the machines change, so that it costs later turns nothing.
func (b *Book) Start(registered bool, s turn.StateReader, fx *turn.Effects) (looks int) {
	if len(b.waiting) == b.stuck {
		return 0
	}
	kept, waiting := b.waiting[:b.stuck], b.waiting[b.stuck:]
	passed := b.stuck
	b.waiting = nil // a start may fail at once and wait again
	for n, w := range waiting {
		looks++
		job := b.jobs[w.num]
		if job == nil || job.Tasks[w.task].State != fsm.Queued {
			continue
		}
		spec := job.Spec
		spec.Count = 1
		if places := b.machines.Place(&spec, job.refusers()...); places != nil {
			b.startTask(w.num, w.task, places[0], s.Index(), fx)
			continue
		}
		if b.machines.FitsEmpty(&spec, job.refusers()...) { // it is next
			kept = append(kept, waiting[n:]...)
			break
		}
		if len(job.refusals) > 0 && b.hasNoPlace(job, registered, s) {
			b.failTask(w, fx)
			continue
		}
		if t := &job.Tasks[w.task]; t.Reason != job.NoPlace() {
			t.Reason = job.NoPlace()
			job.changed(w.task)
		}
		kept = append(kept, w)
		b.stuck++
		passed++
	}
	again := b.waiting
	b.waiting = kept
	if b.stuck != passed { // what was passed over is looked at again
		b.stuck = 0
		b.sort()
	}
	for _, w := range again {
		b.await(w.num, w.task)
	}
	return looks
}

// HandleStarted notes that the process of a home attempt runs.
func (b *Book) HandleStarted(a *attempts.Attempt) {
	if num, t := b.taskOf(a.ID); t != nil && t.Attempt == a.ID.Attempt {
		if t.markRunning(b.now.Wall) {
			b.emitTaskEvent(num, a.ID.Task)
		}
		b.jobs[num].changed(a.ID.Task)
		b.begun(num)
	}
}

// MarkAdopted notes when an adopted attempt began: the event has been told to an earlier life
// of the broker, or to nobody.
func (b *Book) MarkAdopted(a *attempts.Attempt, began time.Time) {
	if num, t := b.taskOf(a.ID); t != nil && t.Attempt == a.ID.Attempt {
		t.markRunning(began)
		b.jobs[num].changed(a.ID.Task)
		b.begun(num)
	}
}

// markRunning notes that the task's process runs since then; true if that is news.
func (t *Task) markRunning(at time.Time) bool {
	t.StartedMs = at.UnixMilli()
	if t.State != fsm.Assigned {
		return false
	}
	t.State = fsm.Running
	return true
}

// isLive reports whether a task in this state has an attempt.
func isLive(s fsm.TaskState) bool {
	return s == fsm.Assigned || s == fsm.Running || s == fsm.Stopping
}
