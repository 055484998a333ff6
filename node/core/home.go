package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// Home jobs run on their own site's machines outside the log (step 2). A job is
// home or published as a whole, so that its counts live in one place; the
// federation hears of the runs afterwards, as usage.

// maxHomeEnded is how many ended home jobs a broker remembers.
const maxHomeEnded = 10_000

// maxLosses after which a task ends as lost, at home as in the federation.
const maxLosses = 5

// homeTask is one task of a home job; it is also its journal record.
type homeTask struct {
	State    fsm.TaskState `json:"state"`
	Reason   string        `json:"reason,omitempty"`
	Machine  string        `json:"machine,omitempty"`
	Attempt  uint32        `json:"attempt"`
	Token    uint64        `json:"token"`
	ExitCode int           `json:"exit_code"`
	Signal   int           `json:"signal"`
	Failures uint32        `json:"failures,omitempty"`
	Losses   uint32        `json:"losses,omitempty"`
	// Moments in unix milliseconds, 0 = not yet.
	StartedMs int64 `json:"started_ms,omitempty"`
	EndedMs   int64 `json:"ended_ms,omitempty"`
	// runMs is the run of the attempt that has just ended, until it is told.
	runMs int64
	// counted is the state that the job's counts have.
	counted fsm.TaskState
	// back: its handler did not take the last attempt, which never ran.
	back bool
}

// homeJob is a job that runs at home.
type homeJob struct {
	Spec  command.JobSpec // never changes
	Tasks []homeTask
	// counts of Tasks by state. Invariant: right after changed.
	counts fsm.Counts
	// summary of Tasks, if summed.
	summary homeSummary
	summed  bool
	// refusals of handlers that will never run its tasks; asked again by a restart.
	refusals []refusal
	// taken: a handler has taken an attempt of it.
	taken bool
	// numbers are the tasks' indices, nil until they are asked for.
	numbers *jobspec.Numbering
}

// index returns the index of the task at a position.
func (j *homeJob) index(position uint32) uint32 {
	if j.numbers == nil {
		n := jobspec.NumberingOf(j.Spec.Payload, j.Spec.Count)
		j.numbers = &n
	}
	return j.numbers.Index(position)
}

type homeWaiting struct {
	num  uint64
	task uint32
}

// homeBook holds the home jobs of this site.
type homeBook struct {
	jobs  map[uint64]*homeJob
	order []uint64 // all of jobs, ascending
	ended []uint64 // of these the ended ones, oldest first
	// waiting tasks want another attempt.
	waiting []homeWaiting
	// stuck is how many at the front of waiting are passed over until the machines
	// change. Invariant: all of them are queued, and no machine could take them.
	stuck int
	// unsure are the jobs with attempts of which no handler has taken any yet: they
	// may still be published.
	unsure map[uint64]bool
	// calm: no home task is being stopped, so that a tick need not look.
	calm bool
}

// add takes a job whose tasks were not touched yet.
func (h *homeBook) add(num uint64, job *homeJob) {
	job.counts[fsm.Queued] = uint32(len(job.Tasks))
	h.jobs[num] = job
	h.order = append(h.order, num)
}

// place finds a machine for every task of a job, all at once; nil if there is
// no room now. but are the handlers that are not asked.
func (c *Core) place(js *command.JobSpec, but ...refusal) []string {
	var total int64
	for _, m := range c.machines {
		total += m.MilliCPU
	}
	if int64(js.Count) > total/max(1, js.Need.MilliCPU) {
		return nil
	}
	places := make([]string, 0, js.Count)
	suits := machineFilter{js: js, but: but}
	for _, name := range c.order {
		m := c.machines[name]
		if !suits.at(m) || c.isResting(name) {
			continue
		}
		total, used, tasks := command.Resources(m.Resources), c.used.all[name], c.used.tasks[name]
		for len(places) < int(js.Count) && fits(total, used, js.Need) && m.hasSlot(tasks) {
			used = plus(used, js.Need)
			tasks++
			places = append(places, name)
		}
	}
	if len(places) < int(js.Count) {
		return nil
	}
	return places
}

// homeOpen reports whether a job may run here at all.
func (c *Core) homeOpen(js *command.JobSpec) bool {
	return js.Allows(c.site)
}

// keepHome takes a job as a home job; its tasks wait.
func (c *Core) keepHome(js command.JobSpec, fx *Effects) {
	c.home.add(js.Num, &homeJob{Spec: js, Tasks: make([]homeTask, js.Count)})
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketHome, record.Number(js.Num), &c.home.jobs[js.Num].Spec))
	c.emitJobEvent(fsm.EventJobSubmitted, js.Num)
}

// runHome starts a job here; the record and its attempts are synced together.
func (c *Core) runHome(js command.JobSpec, places []string, s StateReader, fx *Effects) {
	c.keepHome(js, fx)
	for i, place := range places {
		c.startHomeTask(js.Num, uint32(i), place, s.Index(), fx)
	}
}

// startHomeTask begins the next attempt of a home task.
func (c *Core) startHomeTask(num uint64, task uint32, place string, token uint64, fx *Effects) {
	job := c.home.jobs[num]
	t := &job.Tasks[task]
	if !job.taken {
		c.home.unsure[num] = true
	}
	t.State, t.Machine, t.Reason, t.back = fsm.Assigned, place, "", false
	t.Attempt++
	// After a restart the state here may be older than the one of the last
	// attempt; (token, attempt) only grows all the same.
	token = max(token, t.Token)
	t.Token = token
	id := executor.ID{Job: c.last.nameOf(command.JobID{Site: c.site, Num: num}), Task: task, Attempt: t.Attempt, Token: token}
	rec := attemptRecord{ID: id, Home: true, Machine: place, Need: executor.Resources(job.Spec.Need)}
	run, err := c.taskOf(rec, c.site, job.Spec.TimeoutMs, job.Spec.Payload)
	c.startAttempt(rec, run, err, fx)
	c.writeHome(num, task, fx)
}

func (c *Core) writeHome(num uint64, task uint32, fx *Effects) {
	c.home.jobs[num].changed(task)
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketTasks, record.TaskKey(num, task), c.home.jobs[num].Tasks[task]))
	c.emitTaskEvent(num, task)
}

// startHome gives waiting home tasks their next attempt, in order, as long as
// there is room, and returns how many it looked at. What no machine here could
// ever take is passed over, so that it holds up nobody, and not looked at again
// until the machines change, so that it costs later turns nothing.
func (c *Core) startHome(s StateReader, fx *Effects) (looks int) {
	if c.homePaused() || len(c.home.waiting) == c.home.stuck {
		return 0
	}
	kept, waiting := c.home.waiting[:c.home.stuck], c.home.waiting[c.home.stuck:]
	c.home.waiting = nil // a start may fail at once and wait again
	for n, w := range waiting {
		looks++
		job := c.home.jobs[w.num]
		if job == nil || job.Tasks[w.task].State != fsm.Queued {
			continue
		}
		spec := job.Spec
		spec.Count = 1
		if places := c.place(&spec, job.refusals...); places != nil {
			c.startHomeTask(w.num, w.task, places[0], s.Index(), fx)
			continue
		}
		if c.fitsEmpty(&spec, job.refusals...) { // it is next
			kept = append(kept, waiting[n:]...)
			break
		}
		if len(job.refusals) > 0 && c.hasNoPlace(job, s) {
			c.failHomeTask(w, fx)
			continue
		}
		if t := &job.Tasks[w.task]; t.Reason != job.noPlace() {
			t.Reason = job.noPlace()
			job.changed(w.task)
		}
		kept = append(kept, w)
		c.home.stuck++
	}
	c.home.waiting = append(kept, c.home.waiting...)
	return looks
}

// tooSmall is why a home task waits that would not start with nothing else running.
const tooSmall = "no machine of its site could take it now, even if it were idle"

// homeTaskOf finds the task of a home attempt; nil if the job is forgotten.
func (c *Core) homeTaskOf(id executor.ID) (uint64, *homeTask) {
	job, err := c.last.parse(id.Job)
	if err != nil {
		return 0, nil
	}
	h := c.home.jobs[job.Num]
	if h == nil || int(id.Task) >= len(h.Tasks) {
		return 0, nil
	}
	return job.Num, &h.Tasks[id.Task]
}

// requeueHomeTask queues a home task whose machine turned out to be full, or that its
// handler refused, with why as its reason.
func (c *Core) requeueHomeTask(a *attempt, why string, fx *Effects) {
	num, t := c.homeTaskOf(a.ID)
	c.drop(a, fx)
	if t == nil || t.Attempt != a.ID.Attempt || !isLive(t.State) {
		return
	}
	if t.State == fsm.Stopping {
		t.State, t.EndedMs = fsm.TaskCancelled, c.now.Wall.UnixMilli()
		c.writeHome(num, a.ID.Task, fx)
		c.retireHomeJob(num, fx)
		return
	}
	t.State, t.Reason, t.back = fsm.Queued, why, true
	c.home.waiting = append(c.home.waiting, homeWaiting{num, a.ID.Task})
	c.writeHome(num, a.ID.Task, fx)
}

// handleHomeEnded settles a home attempt: retry, or the task's end.
func (c *Core) handleHomeEnded(a *attempt, r executor.Result, fx *Effects) {
	num, t := c.homeTaskOf(a.ID)
	c.drop(a, fx)
	if t == nil || t.Attempt != a.ID.Attempt || !isLive(t.State) {
		return // its record stayed behind; the task's own has the outcome
	}
	c.homeTaken(num)
	c.tallies.End(a.handler, r, a.stopping)
	c.addUsage(num, a, r, fx)
	spec := &c.home.jobs[num].Spec
	t.ExitCode, t.Signal = r.ExitCode, r.Signal
	if t.State != fsm.Stopping || r.Detail == "" || r.Cause != executor.Vanished {
		t.Reason = r.Detail // else it says who cancelled it
	}
	if !r.Started.IsZero() {
		t.StartedMs = r.Started.UnixMilli()
	}
	outcome := outcomeOf(r, a.stopping)
	switch outcome {
	case command.Failed, command.TimedOut:
		t.Failures++
	case command.Lost:
		t.Losses++
	case command.Succeeded, command.Stopped:
	}
	t.State = homeStateAfter(t, outcome, spec)
	if t.State == fsm.Queued {
		c.home.waiting = append(c.home.waiting, homeWaiting{num, a.ID.Task})
	} else {
		t.EndedMs = c.now.Wall.UnixMilli()
	}
	c.writeHome(num, a.ID.Task, fx)
	c.retireHomeJob(num, fx)
}

// homeStateAfter returns the same rule as the federation's (fsm): a cancelled task
// never runs again, failures count towards max_attempts, losses do not, five
// losses are an end.
func homeStateAfter(t *homeTask, outcome command.Outcome, spec *command.JobSpec) fsm.TaskState {
	if t.State == fsm.Stopping && outcome != command.Succeeded {
		return fsm.TaskCancelled
	}
	switch outcome {
	case command.Succeeded:
		return fsm.TaskSucceeded
	case command.Stopped:
		return fsm.TaskCancelled
	case command.Lost:
		if t.Losses >= maxLosses || spec.OnLoss == command.Never {
			return fsm.TaskLost
		}
		return fsm.Queued
	case command.Failed, command.TimedOut:
		if t.Failures < spec.MaxAttempts {
			return fsm.Queued
		}
		return fsm.TaskFailed
	}
	return fsm.TaskFailed
}

// retireHomeJob remembers an ended job for a while and drops the oldest.
func (c *Core) retireHomeJob(num uint64, fx *Effects) {
	if !c.home.jobs[num].ended() {
		return
	}
	delete(c.home.unsure, num)
	c.home.ended = append(c.home.ended, num)
	c.emitJobEvent(fsm.EventJobEnded, num)
	for len(c.home.ended) > maxHomeEnded {
		old := c.home.ended[0]
		c.home.ended = c.home.ended[1:]
		c.forgetHomeJob(old, fx)
	}
}

// forgetHomeJob drops all that is known of a home job.
func (c *Core) forgetHomeJob(num uint64, fx *Effects) {
	for i := range c.home.jobs[num].Tasks {
		if c.home.jobs[num].Tasks[i] != (homeTask{}) {
			fx.Writes = append(fx.Writes, record.Remove(record.BucketTasks, record.TaskKey(num, uint32(i))))
		}
	}
	fx.Writes = append(fx.Writes, record.Remove(record.BucketHome, record.Number(num)))
	delete(c.home.jobs, num)
	delete(c.home.unsure, num)
	if i, ok := slices.BinarySearch(c.home.order, num); ok {
		copy(c.home.order[1:i+1], c.home.order[:i]) // it is near the front
		c.home.order = c.home.order[1:]
	}
}

// cancelHome ends what waits and stops what runs.
func (c *Core) cancelHome(num uint64, at string, fx *Effects) error {
	job := c.home.jobs[num]
	if job.ended() {
		return fmt.Errorf("cancel job %s.%d: %w", c.site, num, node.ErrEnded)
	}
	for i := range job.Tasks {
		c.cancelHomeTask(num, uint32(i), at, fx)
	}
	c.finishHomeCancel(num, fx)
	return nil
}

// cancelHomeTask ends a task that waits, or has one that runs be stopped; false: it
// has ended. at is the site whose broker was asked; empty: this one's.
func (c *Core) cancelHomeTask(num uint64, i uint32, at string, fx *Effects) bool {
	t := &c.home.jobs[num].Tasks[i]
	switch t.State {
	case fsm.Queued:
		t.State, t.Reason, t.EndedMs = fsm.TaskCancelled, fsm.CancelledAt(cmp.Or(at, c.site)), c.now.Wall.UnixMilli()
	case fsm.Assigned, fsm.Running:
		t.State, t.Reason = fsm.Stopping, fsm.CancelledAt(cmp.Or(at, c.site))
		c.home.calm = false
	default:
		return t.State == fsm.Stopping
	}
	c.writeHome(num, i, fx)
	return true
}

// finishHomeCancel brings handlers and lists in line after tasks were cancelled.
func (c *Core) finishHomeCancel(num uint64, fx *Effects) {
	c.home.stuck = 0 // what was ended may be among them
	c.stopHome(fx)
	c.retireHomeJob(num, fx)
}

// stopHome tells the handlers of home attempts that must end.
func (c *Core) stopHome(fx *Effects) {
	if c.home.calm {
		return
	}
	c.home.calm = true
	for _, a := range c.attempts {
		if !a.Home {
			continue
		}
		if _, t := c.homeTaskOf(a.ID); t != nil && t.State == fsm.Stopping {
			c.home.calm = false
			c.stop(a, t.Reason, fx)
		}
	}
}

// unixMs turns a journal moment into a time; 0 is the zero time.
func unixMs(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
