package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Delivery is a task whose outputs its owner is to fetch from the site that ran it, and then to say so by a Deliver.
type Delivery struct {
	command.AttemptRef
	Site    string         // where the outputs are
	Output  command.Output // zero: its site has collected nothing
	Since   uint64         // entry with which it began
	SinceMs int64          // log time of that entry
}

// Deliveries returns the tasks of an owner that are delivering, in the order in which that began, then by job and task.
func (s *views) Deliveries(owner string) []Delivery {
	x := s.byName[owner]
	if x == nil {
		return nil
	}
	return s.viewDeliveries(x, 0)
}

// DeliveriesSince returns those deliveries of an owner that began after an entry, in the same order. A delivery never
// changes; the cost depends on what has begun.
//
// What left by the owner's own Deliver is not told: the owner knows. If anything else left since then (its user has
// cancelled it, or the owner was forgotten), or the entry is not in this state's past, whole is true and all deliveries
// are returned: what is not among them is none any more.
func (s *views) DeliveriesSince(owner string, entry uint64) (changed []Delivery, whole bool) {
	x := s.byName[owner]
	switch {
	case x == nil:
		return nil, true
	case entry < x.settledAt || entry > s.index:
		return s.viewDeliveries(x, 0), true
	}
	return s.viewDeliveries(x, entry), false
}

// DeliveryChange returns the number of the last entry that changed what Deliveries returns. It is 0 for an unknown
// site. After Restore it is the restored entry's number.
func (s *views) DeliveryChange(owner string) uint64 {
	if x := s.byName[owner]; x != nil {
		return x.deliveryAt
	}
	return 0
}

func (s *views) viewDeliveries(x *site, after uint64) []Delivery {
	from := x.delivering.Search(func(k *deliveryKey) bool { return k.since > after })
	n := x.delivering.Len() - x.delivering.Rank(from)
	if n == 0 {
		return nil
	}
	out := make([]Delivery, 0, n)
	for k := range x.delivering.From(from) {
		j := s.jobs.Get(k.seq)
		d := j.tasks.findDelivery(k.task)
		out = append(out, Delivery{
			AttemptRef: command.AttemptRef{Job: s.idOf(j), Task: d.task, Attempt: d.attempt, Token: d.token},
			Site:       s.sites[d.site].name, Output: d.facts.get().output, Since: d.since, SinceMs: d.sinceMs,
		})
	}
	return out
}

// OutputsWanted reports whether a site must keep what it has collected, or will collect, of an attempt: the attempt has
// not ended there by this state, or its task is delivering. After that nobody is told to fetch it; what a failed
// attempt left is fetched while its site keeps it on its own.
func (s *views) OutputsWanted(name string, ref command.AttemptRef) bool {
	x := s.byName[name]
	if x == nil {
		return false
	}
	if _, live := s.Assignment(name, ref); live {
		return true
	}
	seq := s.findJob(ref.Job)
	if seq == 0 {
		return false
	}
	d := s.jobs.Get(seq).tasks.findDelivery(ref.Task)
	return d != nil && d.site == x.id && d.attempt == ref.Attempt && d.token == ref.Token
}

// OutputsLeft reports whether what an attempt at a site has left is, or may be, what is left of its task: the task has
// failed or was cancelled, and by its record, if one is kept, this attempt was the last. Nothing waits for that; its
// owner may fetch it while the site keeps it.
func (s *views) OutputsLeft(name string, ref command.AttemptRef) bool {
	x, seq := s.byName[name], s.findJob(ref.Job)
	if x == nil || seq == 0 {
		return false
	}
	j := s.jobs.Get(seq)
	if !j.delivers || j.tasks == nil || ref.Task >= j.count {
		return false
	}
	at, ended := j.tasks.findRun(ref.Task)
	if !ended || at.state != TaskFailed && at.state != TaskCancelled {
		return false
	}
	r := j.tasks.findRecord(ref.Task)
	return r == nil || r.site == x.id && r.attempt == ref.Attempt && r.token == ref.Token
}

// OutputsChange returns the number of the last entry with which OutputsWanted became false for something that a site
// keeps. It is 0 for an unknown site. After Restore it is the restored entry's number.
func (s *views) OutputsChange(name string) uint64 {
	if x := s.byName[name]; x != nil {
		return x.unwanted
	}
	return 0
}

func (s *views) viewDelivering(v *TaskView, j *job, d *delivery) {
	s.viewRecord(v, &d.record)
	v.State, v.Delivering, v.EndedMs, v.Reason = Running, true, -1, s.deliveringWhy(j, d)
}

// deliveringWhy says what a task that is delivering waits for.
func (s *views) deliveringWhy(j *job, d *delivery) string {
	owner, at := s.sites[j.owner], s.sites[d.site]
	switch {
	case !owner.present():
		return fmt.Sprintf("it has run at %s, which keeps its outputs: its owner %s is away", at.name, owner.name)
	case !at.present():
		return fmt.Sprintf("it has run at %s, which is away with its outputs: %s waits for them, and has it run again "+
			"if they do not come", at.name, owner.name)
	}
	return fmt.Sprintf("it has run at %s: %s fetches its outputs", at.name, owner.name)
}

// maxDeliveryLooks bounds the deliveries that are examined to say why a job is not over.
const maxDeliveryLooks = 1000

// jobDeliveringWhy says what a job waits for of which nothing is left but deliveries: the first that has to wait for a
// site, else the first.
func (s *views) jobDeliveringWhy(j *job) string {
	why, looks := "", 0
	for d := range j.tasks.delivering().All() {
		if looks++; why == "" || !s.sites[d.site].present() {
			why = fmt.Sprintf("task %d: %s", d.task, s.deliveringWhy(j, d))
		}
		if looks == maxDeliveryLooks || !s.sites[d.site].present() || !s.sites[j.owner].present() {
			break
		}
	}
	if n := j.tasks.delivering().Len(); n > 1 {
		return fmt.Sprintf("%d tasks have run, and their outputs are on their way; %s", n, why)
	}
	return why
}
