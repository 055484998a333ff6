package fsm

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// A task of a job that delivers does not end when an attempt of it succeeds at another site. The attempt ends: it is
// charged, and its room is free. The task is delivering until its owner says what became of the outputs. What is kept
// of it stands in its job, beside the tasks that wait again: it holds no machine, and no loss of a site ends it.

// delivery is a task whose outputs are on their way to its owner.
type delivery struct {
	record
	// last is the task's latest attempt. Invariant: ≥ record.attempt; greater if that one overtook a later one.
	last   uint32
	doubts uint32 // as in attempt
	since  uint64 // the entry with which it began
	// sinceMs is the log time of that entry.
	sinceMs int64
}

// facts are what a site told of an attempt's outputs and of what it used. They are never changed.
type facts struct {
	output   command.Output
	measured command.Measured
}

// factsOf returns what is kept of a report, nil if it tells nothing. Outputs of a job that declares none are ignored.
func factsOf(j *job, e *command.Ended) *facts {
	f := facts{measured: e.Measured}
	if j.delivers {
		f.output = e.Output
	}
	if f == (facts{}) {
		return nil
	}
	return &f
}

// get returns the facts; f may be nil.
func (f *facts) get() facts {
	if f == nil {
		return facts{}
	}
	return *f
}

// deliveryKey is a place in the order in which a site's deliveries began.
type deliveryKey struct {
	since, seq uint64
	task       uint32
}

func (k deliveryKey) compare(o deliveryKey) int {
	return cmp.Or(cmp.Compare(k.since, o.since), cmp.Compare(k.seq, o.seq), cmp.Compare(k.task, o.task))
}

// delivering returns the tasks whose outputs are on their way, by task, for reading only; t may be nil.
func (t *taskSet) delivering() *store.Sorted[delivery] {
	if t == nil || t.seldom == nil {
		return nil
	}
	return &t.seldom.delivering
}

// seekDelivery returns where a task that is delivering is or would be, and its delivery, nil if there is none; t may
// be nil.
func (t *taskSet) seekDelivery(task uint32) (store.Place, *delivery) {
	all := t.delivering()
	at := all.Search(func(d *delivery) bool { return d.task >= task })
	if d := all.Get(at); d != nil && d.task == task {
		return at, d
	}
	return at, nil
}

// findDelivery returns the delivery of a task, or nil; t may be nil.
func (t *taskSet) findDelivery(task uint32) *delivery {
	_, d := t.seekDelivery(task)
	return d
}

// addDelivery enters a delivery into its job and its owner's list.
func (s *jobTable) addDelivery(seq uint64, j *job, d delivery) {
	t := j.set(s.epoch)
	at, _ := t.seekDelivery(d.task)
	t.rare().delivering.Insert(at, d)
	x, key := s.sites[j.owner], deliveryKey{d.since, seq, d.task}
	x.delivering.Insert(x.delivering.Search(func(o *deliveryKey) bool { return o.compare(key) > 0 }), key)
	x.deliveryAt = s.index
}

// dropDelivery removes a task's delivery and returns it.
//
// REQUIRES: the task is delivering.
func (s *jobTable) dropDelivery(seq uint64, task uint32) delivery {
	j := s.mutJob(seq)
	t := j.set(s.epoch)
	at, p := t.seekDelivery(task)
	d := *p
	t.seldom.delivering.Remove(at)
	x, key := s.sites[j.owner], deliveryKey{d.since, seq, task}
	x.delivering.Remove(x.delivering.Search(func(o *deliveryKey) bool { return o.compare(key) >= 0 }))
	x.deliveryAt, s.sites[d.site].unwanted = s.index, s.index
	s.steps.used += stepSettle
	return d
}

// ranMs returns how long the attempt ran, as it was charged, in log milliseconds.
func (r *record) ranMs() int64 {
	if r.startedMs < 0 {
		return 0
	}
	return r.endedMs - r.startedMs
}

// beginDelivery keeps a task whose attempt has succeeded until its owner has the outputs. If its owner's departure is
// over, nobody will fetch them. An owner that leaves too many where they are loses what comes beyond: it would cost
// the memory of all.
func (s *lifecycle) beginDelivery(a *attempt, r record) {
	j := s.mutJob(a.seq)
	x := s.sites[j.owner]
	s.tellRecord(EventTaskDelivering, j, &r, EndSucceeded)
	s.delivered = true
	switch {
	case x.gone:
		r.detail = ownerLeft
		s.endTask(a.seq, TaskLost, r)
	case uint64(x.delivering.Len()) >= s.limits.delivering:
		r.detail = fmt.Sprintf("its owner has not fetched the outputs of %d tasks: more may not wait for it",
			x.delivering.Len())
		s.lose(a, r, command.Lost)
	default:
		s.addDelivery(a.seq, j, delivery{
			record: r, last: a.attempt, doubts: a.doubts, since: s.index, sinceMs: s.time,
		})
	}
	s.delivered = false
}

// deliver executes a Deliver. What names no task that is delivering is passed over: it may have ended meanwhile.
func (s *lifecycle) deliver(x *site, c *command.Deliver) command.Result {
	for i := range c.Attempts {
		if c.Attempts[i].Job.Site != x.name {
			return command.Result{Code: command.NotOwner}
		}
	}
	for i := range c.Attempts {
		r := &c.Attempts[i]
		s.steps.used += stepLook
		seq := x.nums[r.Job.Num]
		if seq == 0 {
			continue
		}
		d := s.jobs.Get(seq).tasks.findDelivery(r.Task)
		if d == nil || !noTokenCheck && (d.attempt != r.Attempt || d.token != r.Token) {
			continue
		}
		s.settleDelivery(seq, r)
	}
	return command.Result{}
}

// settleDelivery decides what happens to a task whose owner has its outputs, or never will. The run was charged when
// its attempt ended, so if it waits again that is one more release.
func (s *lifecycle) settleDelivery(seq uint64, by *command.Delivered) {
	d := s.dropDelivery(seq, by.Task)
	a := d.asAttempt(seq)
	r := d.record
	o := command.Succeeded
	switch by.Outcome {
	case command.DeliveryOK:
	case command.DeliveryLost:
		o, r.detail = command.Lost, cmp.Or(strings.Clone(by.Detail), "its outputs were lost at "+s.sites[d.site].name)
	case command.DeliveryFailed:
		o, r.detail = command.Failed, cmp.Or(strings.Clone(by.Detail), "its outputs are not what its job requires")
	}
	s.charged, s.delivered = r.ranMs(), true
	if o == command.Succeeded {
		s.endTask(seq, TaskSucceeded, r)
	} else {
		s.settleTask(&a, r, o)
	}
	s.charged, s.delivered = 0, false
	s.noteReturned(&a)
}

// asAttempt returns what settles the task of a delivery as if its attempt ended now.
func (d *delivery) asAttempt(seq uint64) attempt {
	return attempt{
		seq: seq, task: d.task, attempt: d.last, token: d.token, site: d.site, doubts: d.doubts, phase: phaseRunning,
	}
}

// endDelivery ends a task that is delivering: nobody wants its outputs any more.
func (s *lifecycle) endDelivery(seq uint64, task uint32, state TaskState, why string) {
	d := s.dropDelivery(seq, task)
	r := d.record
	r.detail = why
	s.charged, s.delivered = r.ranMs(), true
	s.endTask(seq, state, r)
	s.charged, s.delivered = 0, false
	s.sites[s.jobs.Get(seq).owner].settledAt = s.index
}
