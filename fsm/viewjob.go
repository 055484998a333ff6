package fsm

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
)

var stateNames = [...]string{
	"queued", "assigned", "running", "stopping", "succeeded", "failed", "cancelled", "lost", "withdrawn",
	"held",
}

// String returns the state's name in the API.
func (t TaskState) String() string {
	if int(t) < len(stateNames) {
		return stateNames[t]
	}
	return fmt.Sprintf("TaskState(%d)", uint8(t))
}

// Ended reports whether the state is final.
func (t TaskState) Ended() bool { return t >= TaskSucceeded && t <= TaskLost }

// JobState returns the state of a job with these tasks.
func (c *Counts) JobState() TaskState {
	switch {
	case c[Running]+c[Assigned]+c[Stopping] > 0:
		return Running
	case c[Queued]+c[Held] > 0:
		return Queued
	case c[Withdrawn] > 0:
		return Withdrawn
	}
	for _, t := range [...]TaskState{TaskFailed, TaskLost, TaskCancelled} {
		if c[t] > 0 {
			return t
		}
	}
	return TaskSucceeded
}

// counts returns the number of a job's tasks in each state.
func (s *jobTable) counts(j *job) Counts {
	var c Counts
	if s.sites[j.owner].present() {
		c[Queued], c[Held] = j.waiting(), j.heldTasks()
	} else {
		c[Withdrawn] = j.waiting() + j.heldTasks()
	}
	if t := j.tasks; t != nil {
		c[Assigned], c[Running] = t.live[phaseAssigned], t.live[phaseRunning]+uint32(t.delivering().Len())
		c[Stopping] = t.live[phaseStopping] + t.live[phaseAwaitingBound]
		c[Withdrawn] += t.live[phaseAway]
		copy(c[TaskSucceeded:], t.ends[:])
	}
	return c
}

// Job returns one job.
func (s *views) Job(id command.JobID) (JobView, bool) {
	seq := s.findJob(id)
	if seq == 0 {
		return JobView{}, false
	}
	return s.viewJob(seq, s.jobs.Get(seq), newReasons()), true
}

// reasons remembers why jobs of a class wait while several jobs are viewed.
type reasons struct {
	of    map[*class]string
	unfit int // classes that nothing runs: for each of them all machines were examined
}

func newReasons() *reasons { return &reasons{of: map[*class]string{}} }

// viewJob copies a job.
func (s *views) viewJob(seq uint64, j *job, whys *reasons) JobView {
	c := s.counts(j)
	v := JobView{
		ID: s.idOf(j), Spec: j.spec(), State: c.JobState(), Counts: c, Seq: seq,
		Entry: j.entry, QueuedMs: j.queuedMs, StartedMs: j.startedMs, EndedMs: j.endedMs,
		Delivering: uint32(j.tasks.delivering().Len()),
	}
	switch {
	case v.State == Withdrawn:
		v.Reason = ownerAway(v.ID.Site)
	case v.State == Queued && c[Queued] == 0:
		v.Reason = heldWhy
	case v.State == Queued:
		why, ok := whys.of[j.class]
		if !ok {
			why = s.queuedWhy(&j.class.Shape, whys)
			whys.of[j.class] = why
		}
		doubt := ""
		if b := j.tasks.back().First(); b != nil {
			doubt = s.viewDoubt(j, b)
		}
		switch v.Reason = why; {
		case s.holds():
			v.Reason = fmt.Sprintf("the federation was recovered: nothing is assigned for %d s, "+
				"until what ran before must have ended", (s.HeldMs()+999)/1000)
		case doubt != "":
			v.Reason = doubt
		}
	case v.Delivering > 0 && v.Delivering == c[Running]+c[Assigned]+c[Stopping]:
		v.Reason = s.jobDeliveringWhy(j)
	case j.over() && v.State != TaskSucceeded:
		v.Reason = j.tasks.why
	}
	return v
}

// queuedWhy returns why jobs with such tasks wait.
func (s *views) queuedWhy(h *command.Shape, whys *reasons) string {
	fits, why := s.anyFits(h)
	if !fits {
		whys.unfit++
		return why
	}
	why = "waiting for its turn and a free machine"
	if text := s.unknownSitesText(h); text != "" {
		why += "; " + text
	}
	return why
}

func (j *job) spec() command.JobSpec {
	priority, nice := command.SplitOrder(j.order)
	return command.JobSpec{
		Num: j.num, Count: j.count, Need: j.class.Need, Image: j.class.Image, Delivers: j.delivers, Gated: j.gated,
		TimeoutMs: j.timeoutMs, MaxAttempts: j.maxAttempts, OnLoss: j.onLoss, Priority: priority, Nice: nice,
		Only: slices.Clone(j.class.Only), Not: slices.Clone(j.class.Not), Selectors: slices.Clone(j.class.Selectors),
		CreatedMs: j.createdMs, Payload: j.payload.bytes(),
	}
}

// maxScan bounds how many jobs one call of Jobs examines.
const maxScan = 20_000

// MaxPageBytes bounds the payloads in one page of jobs, which holds at least one job: a thousand of the
// largest jobs would be a gigabyte, copied while Apply waits.
const MaxPageBytes = 1 << 20

// maxPageLooks is about how many machines are examined for one page of jobs, to say why its jobs wait. The
// last requirement may exceed it.
const maxPageLooks = 1_000_000

// Jobs returns up to limit jobs that arrived before the given Seq (0 = the newest), newest first, and the
// Seq to continue with (0 = no more). It examines a bounded number of jobs and machines and copies a bounded
// number of bytes, so a page may be short, even empty, before the end.
func (s *views) Jobs(f JobFilter, before uint64, limit int) ([]JobView, uint64) {
	if before == 0 {
		before = s.nextSeq
	}
	var out []JobView
	whys := newReasons()
	scanned, size, machines, read := 0, 0, s.machines(), []byte(nil)
	for seq, j := range s.jobs.Below(before) {
		if len(out) >= limit || scanned >= maxScan || whys.unfit*machines > maxPageLooks {
			return out, before
		}
		scanned++
		if s.matches(f, j, &read) {
			if size += len(j.payload.data); size > MaxPageBytes && len(out) > 0 {
				return out, before
			}
			out = append(out, s.viewJob(seq, j, whys))
		}
		before = seq
	}
	return out, 0
}

// machines returns how many machines all sites have.
func (s *views) machines() (n int) {
	for _, x := range s.sites {
		n += len(x.machines)
	}
	return n
}

// NextSeq returns a number greater than the Seq of every job so far.
func (s *views) NextSeq() uint64 { return s.nextSeq }

// matches reports whether a filter selects a job; read is the buffer for payloads.
func (s *views) matches(f JobFilter, j *job, read *[]byte) bool {
	if f.Owner != "" && s.sites[j.owner].name != f.Owner {
		return false
	}
	if f.State != "" {
		if c := s.counts(j); c.JobState().String() != f.State {
			return false
		}
	}
	if f.Match == nil {
		return true
	}
	*read = append((*read)[:0], j.payload.data...)
	return f.Match(*read)
}

// TaskCounts returns a job's tasks by state, false if the job is not known.
func (s *views) TaskCounts(id command.JobID) (Counts, bool) {
	seq := s.findJob(id)
	if seq == 0 {
		return Counts{}, false
	}
	return s.counts(s.jobs.Get(seq)), true
}

// OwnJobs yields a site's jobs in the state, by number.
func (s *views) OwnJobs(name string) iter.Seq[JobView] {
	return func(yield func(JobView) bool) {
		x := s.byName[name]
		if x == nil {
			return
		}
		nums := make([]uint64, 0, len(x.nums))
		for n := range x.nums {
			nums = append(nums, n)
		}
		slices.Sort(nums)
		whys := newReasons()
		for _, n := range nums {
			seq := x.nums[n]
			if !yield(s.viewJob(seq, s.jobs.Get(seq), whys)) {
				return
			}
		}
	}
}

// Tasks returns up to limit tasks of a job with index ≥ from, and the next index, 0 when there are no more
// (or no such job).
func (s *views) Tasks(id command.JobID, from uint32, limit int) ([]TaskView, uint32) {
	seq := s.findJob(id)
	if seq == 0 || limit <= 0 {
		return nil, 0
	}
	j := s.jobs.Get(seq)
	var out []TaskView
	for i := from; i < j.count; i++ {
		if len(out) == limit {
			return out, i
		}
		out = append(out, s.viewTask(seq, j, i))
	}
	return out, 0
}

// ownerAway returns the reason of withdrawn tasks.
func ownerAway(owner string) string { return fmt.Sprintf("its owner %s is away", owner) }

func (s *views) viewTask(seq uint64, j *job, i uint32) TaskView {
	v := TaskView{Index: i, QueuedMs: j.queuedMs, AssignedMs: -1, StartedMs: -1, EndedMs: -1}
	switch {
	case j.tasks != nil:
		s.viewTouched(&v, seq, j)
	case j.gated:
		v.State, v.Reason = Held, heldWhy
	}
	switch owner := s.sites[j.owner]; {
	case (v.State == Queued || v.State == Held) && !owner.present():
		v.State, v.Reason = Withdrawn, ownerAway(owner.name)
	case v.State == Withdrawn && v.Reason == "": // the lost owner itself runs it
		v.Reason = ownerAway(owner.name)
	}
	return v
}

// viewTouched fills in a task that may have left the range.
func (s *views) viewTouched(v *TaskView, seq uint64, j *job) {
	i := v.Index
	if slot, ok := s.live[taskKey{seq, i}]; ok {
		s.viewLive(v, s.attempts.Get(slot))
		return
	}
	if b := j.tasks.findBack(i); b != nil {
		v.QueuedMs, v.Attempt = b.queuedMs, b.attempt
		v.Failures, v.Reason = b.failures, cmp.Or(s.viewDoubt(j, b), b.losses.note())
		v.Losses, v.Orphans = b.losses.bySite(), b.losses.orphans()
		return
	}
	if d := j.tasks.findDelivery(i); d != nil {
		s.viewDelivering(v, j, d)
		return
	}
	if at, ok := j.tasks.findRun(i); ok {
		s.viewEnded(v, j, at, j.tasks.findRecord(i))
		return
	}
	s.viewGated(v, j)
}

func (s *views) viewLive(v *TaskView, a *attempt) {
	v.State = [...]TaskState{Assigned, Running, Stopping, Withdrawn, Stopping}[a.phase]
	v.Site, v.Machine, v.Attempt, v.Token = s.sites[a.site].name, a.machine.name, a.attempt, a.token
	v.QueuedMs, v.AssignedMs, v.StartedMs = a.queuedMs, a.assignedMs, a.startedMs
	v.Failures, v.Reason = a.failures, cmp.Or(a.why, s.viewTwice(a))
	v.Losses, v.Orphans = a.losses.bySite(), a.losses.orphans()
	if a.phase != phaseAwaitingBound {
		return
	}
	left := (a.boundMs - s.time + 999) / 1000
	v.Reason = fmt.Sprintf("%s lost it: certainly dead within %d s", v.Site, left)
	if a.why != "" {
		v.Reason = a.why + "; " + v.Reason
	}
}

func (s *views) viewEnded(v *TaskView, j *job, u *run, r *record) {
	v.State, v.ExitCode, v.EndedMs, v.Reason = u.state, u.exit, u.endedMs, s.endReason(j, u, r)
	if r != nil {
		s.viewRecord(v, r)
	}
}

// viewRecord fills in what is known of an attempt that ended.
func (s *views) viewRecord(v *TaskView, r *record) {
	if r.site >= 0 {
		v.Site = s.sites[r.site].name
	}
	v.Machine, v.Attempt, v.Token = r.machine, r.attempt, r.token
	v.QueuedMs, v.AssignedMs, v.StartedMs, v.EndedMs = r.queuedMs, r.assignedMs, r.startedMs, r.endedMs
	v.ExitCode, v.Signal, v.Failures = r.exit, r.signal, r.failures
	v.Losses, v.Orphans = r.losses.bySite(), r.losses.orphans()
	f := r.facts.get()
	v.Output, v.Measured = f.output, f.measured
}

// endReason returns why a task of the run ended so: its record says it, if there is one that does. Tasks that
// were waiting have none. They end with their job only because their owner cancelled it or departed, and then
// all at once (endedMs).
func (s *views) endReason(j *job, u *run, r *record) string {
	switch {
	case r != nil && r.detail != "":
		return r.detail
	case u.state == TaskCancelled && u.endedMs >= 0 && j.gated && j.tasks.cancel() == 0:
		return "its owner ended it while it was held"
	case u.state == TaskCancelled && u.endedMs >= 0:
		return s.cancelWhy(j)
	case u.state == TaskCancelled: // with the job, or on its own before that
		return "cancelled: the record of this end is not kept"
	case u.state == TaskFailed && u.endedMs >= 0:
		return "its owner ended it while it was held"
	case u.state == TaskLost && u.endedMs >= 0:
		return ownerLeft
	case u.state == TaskLost:
		return "lost by its site, or its owner left: the record of this end is not kept"
	}
	return ""
}
