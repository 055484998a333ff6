package own

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/after"
	"github.com/cloudshare/cloudshare/node/core/gates"
	"github.com/cloudshare/cloudshare/node/core/homejobs"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/seal"
)

// Record is what the core copies of a job that only this broker knows: at
// home, or on its way. The rest of its view is made outside the core's turn.
type Record struct {
	Spec   command.JobSpec // its slices are shared, and never change
	counts fsm.Counts
	held   uint32 // of counts[fsm.Queued]: tasks of a job that waits for others
	// unbrought: the job has ended since its inputs did not come.
	unbrought bool
	homejobs.Summary
}

// Spec returns what a job's owner asked for, if only this broker knows the job.
func (o *Jobs) Spec(num uint64) (js command.JobSpec, ok bool) {
	if h := o.home.Find(num); h != nil {
		return h.Spec, true
	}
	if a := o.after.Find(num); a != nil {
		return a.Spec, true
	}
	if p := o.pubs.Find(num); p != nil {
		return p.Spec, true
	}
	return js, false
}

// Record copies a job; steps counts the tasks that were looked at.
func (o *Jobs) Record(num uint64) (r Record, steps int, ok bool) {
	if h := o.home.Find(num); h != nil {
		sum, steps := h.Sum()
		r = Record{Spec: h.Spec, counts: h.Counts(), Summary: sum}
		if o.home.IsHeld(num) {
			if r.held = r.counts[fsm.Queued]; r.counts.JobState() == fsm.Queued {
				r.Reason = gates.ByHand
			}
		}
		return r, steps, true
	}
	if a := o.after.Find(num); a != nil {
		r.Spec, r.Reason, r.EndedMs = a.Spec, o.after.WaitsFor(a), a.EndedMs
		r.counts[a.State()] = a.Spec.Count
		r.unbrought = a.Inputs == after.InputsFailed
		if a.Held() {
			o.addAsked(&r)
			r.held = r.counts[fsm.Queued]
		}
		return r, 0, true
	}
	if p := o.pubs.Find(num); p != nil {
		r.Spec, r.Reason = p.Spec, o.pendingReason(p)
		r.counts[fsm.Queued] = p.Spec.Count
		o.addAsked(&r)
		return r, 0, true
	}
	return r, 0, false
}

// addAsked adds to a job that waits what its user has asked of it.
func (o *Jobs) addAsked(r *Record) {
	runs, _ := o.gates.Cancelled(r.Spec.Num)
	for _, run := range runs {
		r.counts[fsm.Queued] -= run.To - run.From
		r.counts[fsm.TaskCancelled] += run.To - run.From
	}
	if o.gates.WasHeld(r.Spec.Num) {
		r.Reason += "; " + gates.ByHand
	}
}

// View shows the job of a site, as far as by may read it.
func (r *Record) View(site string, by jobspec.Opener) node.Job {
	spec, err := jobspec.SpecOf(r.Spec, by)
	if err != nil {
		spec = jobspec.Spec{Name: "unreadable: " + err.Error()}
	}
	return node.Job{
		ID: command.JobID{Site: site, Num: r.Spec.Num}, Spec: spec, State: r.counts.JobState().String(),
		Reason:     r.Reason,
		Durability: node.DurableSite, Counts: node.CountsOf(r.counts, r.held),
		SubmittedAt: time.UnixMilli(r.Spec.CreatedMs),
		StartedAt:   unixMs(r.StartedMs), EndedAt: unixMs(r.EndedMs), Unbrought: r.unbrought,
	}
}

// Job shows a job that only this broker knows, as everybody may read it.
func (o *Jobs) Job(num uint64) (node.Job, bool) {
	r, _, ok := o.Record(num)
	if !ok {
		return node.Job{}, false
	}
	return r.View(o.site, seal.Outsider{}), true
}

// pendingReason returns why a job on its way is not in the queue.
func (o *Jobs) pendingReason(p *publish.Job) string {
	if p.Recovered && o.out.Incarnation() == 0 {
		return "this site has it; whether it was published already is known once there is a quorum"
	}
	if p.Held {
		return publish.Held
	}
	if o.alone() {
		return publish.Unpublished
	}
	return "being published to the federation"
}

func (o *Jobs) homeTask(t *homejobs.Task) node.Task {
	v := node.Task{
		State: t.State.String(), Reason: t.Reason, Machine: t.Machine,
		Attempt: t.Attempt, Token: t.Token, StartedAt: unixMs(t.StartedMs), EndedAt: unixMs(t.EndedMs),
	}
	v.Run = -1
	if t.StartedMs > 0 && t.EndedMs > 0 {
		v.Run = node.Ran(t.StartedMs, t.EndedMs)
	}
	if t.Attempt > 0 {
		v.Site = o.site
	}
	if t.Measured != nil {
		v.Measured = *t.Measured
	}
	v.ExitCode, v.Signal = node.Codes(t.State, int32(t.ExitCode), int32(t.Signal))
	return v
}

// FindTasks searches the tasks of a job that only this broker knows.
func (o *Jobs) FindTasks(num uint64, q node.TaskQuery) (tasks []node.Task, next uint32, found bool) {
	js, found := o.Spec(num)
	if !found {
		return nil, 0, false
	}
	n, steps := jobspec.NumberingOf(js.Payload, js.Count), 0
	view := o.taskView(num)
	next = q.Walk(&n, func(from, to uint32) uint32 {
		for ; from < to && len(tasks) < q.Limit && steps < Steps; from++ {
			steps++
			if state, show := view(from); q.States.Has(state) {
				t := show()
				t.Index, t.Position = n.Index(from), from
				tasks = append(tasks, t)
			}
		}
		return from
	})
	return tasks, next, true
}

// taskView shows the tasks of a job that only this broker knows: each one's
// state, and all of it. REQUIRES: the job is known.
func (o *Jobs) taskView(num uint64) func(position uint32) (fsm.TaskState, func() node.Task) {
	if h := o.home.Find(num); h != nil {
		return func(i uint32) (fsm.TaskState, func() node.Task) {
			t := &h.Tasks[i]
			if t.State == fsm.Queued && o.home.IsHeld(num) {
				return fsm.Held, func() node.Task {
					v := o.homeTask(t)
					v.State, v.Reason = node.Held, gates.ByHand
					return v
				}
			}
			return t.State, func() node.Task { return o.homeTask(t) }
		}
	}
	if a := o.after.Find(num); a != nil {
		return o.heldTask(a)
	}
	t := node.Task{State: fsm.Queued.String(), Reason: o.pendingReason(o.pubs.Find(num)), Run: -1}
	return o.withCancelled(num, fsm.Queued, t)
}

// withCancelled shows tasks that are all alike but for those that were cancelled.
func (o *Jobs) withCancelled(
	num uint64, state fsm.TaskState, t node.Task,
) func(position uint32) (fsm.TaskState, func() node.Task) {
	runs, why := o.gates.Cancelled(num)
	return func(i uint32) (fsm.TaskState, func() node.Task) {
		if gates.InRuns(runs, i) {
			return fsm.TaskCancelled, func() node.Task {
				return node.Task{State: fsm.TaskCancelled.String(), Reason: why, Run: -1}
			}
		}
		return state, func() node.Task { return t }
	}
}

// heldTask shows the tasks of a job that waits for others, or has waited in vain: they are all alike.
func (o *Jobs) heldTask(a *after.Job) func(position uint32) (fsm.TaskState, func() node.Task) {
	state, t := fsm.Held, node.Task{State: node.Held, Reason: o.after.WaitsFor(a), Run: -1}
	if !a.Held() {
		state, t.State, t.EndedAt = a.State(), a.State().String(), unixMs(a.EndedMs)
	}
	return o.withCancelled(a.Spec.Num, state, t)
}

// Waits reports whether a job as a whole waits for others: it is not in the federation, nor at home.
func (o *Jobs) Waits(num uint64) bool { return o.after.IsHeld(num) }

// Dependencies returns what a job waits for, and the first most of those that wait for it. The latter may be known of a
// job that the federation has.
func (o *Jobs) Dependencies(num uint64, most int) (d node.Dependencies) {
	if a := o.after.Find(num); a != nil {
		d.On = o.after.On(a)
	}
	d.Waiting, d.All = o.after.Waiting(num, most)
	return d
}

// unixMs turns a journal moment into a time; 0 is the zero time.
func unixMs(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
