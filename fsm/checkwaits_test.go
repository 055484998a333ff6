package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/sched"
)

// checkWaits recomputes what the policies of projected waits keep from jobs and sites.
func (s *State) checkWaits() error {
	w := s.waits
	if (w != nil) != (s.founded > 0 && sched.IsProjected(s.params.Policy)) {
		return fmt.Errorf("waits are kept: %v, policy %s", w != nil, s.params.Policy)
	}
	if w == nil {
		for _, x := range s.sites {
			if x.waits != (waitSite{}) || x.account.Projection != (sched.Projection{}) {
				return fmt.Errorf("%s keeps waits under %s", x.name, s.params.Policy)
			}
		}
		return nil
	}
	want, booked := make([]sched.Waits, len(s.sites)), make([]sched.Int128, len(s.sites))
	if w.limit > 0 && (s.phase == matched || !s.unfinished()) {
		return fmt.Errorf("the policy has not begun, and nothing is left")
	}
	for seq, j := range s.jobs.All() {
		if !w.hasJob(seq) {
			continue
		}
		if !j.over() && j.booked < 1 {
			return fmt.Errorf("job %d has no estimate", seq)
		}
		for i := range j.count {
			v := s.viewTask(seq, j, i)
			x := s.sites[j.owner]
			away := v.State == Withdrawn && s.live[taskKey{seq, i}] == 0 && v.AssignedMs < 0
			held := findSpan(j.heldSpans(), i) != nil || j.tasks.findAgain(i) != nil
			if _, live := s.live[taskKey{seq, i}]; v.State == Queued || away && !live && !held {
				want[j.owner].Wait(widthOf(j.class.Need), max(x.waits.from, s.quanta(v.QueuedMs)))
				booked[j.owner] = booked[j.owner].Add(sched.Mul64(widthOf(j.class.Need), j.booked))
			}
		}
	}
	counted := map[uint64]bool{}
	for i := range w.due.Len() {
		d := *w.due.At(i)
		if s.isDue(d) {
			counted[d.slot] = true
		}
		if s.isDue(d) && (d.at < s.quanta(s.time) && !s.prolonging || s.attempts.Get(d.slot).length < 1) ||
			i > 0 && d.isBefore(w.due.At((i-1)/2)) {
			return fmt.Errorf("attempt %+v is not at its place among the due", d)
		}
	}
	begun := 0
	for key := range s.live {
		if w.has(key.seq, key.task) {
			begun++
		}
	}
	if len(counted) != begun || w.due.Len() > 2*s.attempts.Len()+1000 {
		return fmt.Errorf("%d live attempts, %d of %d due", s.attempts.Len(), len(counted), w.due.Len())
	}
	var all sched.Waits
	for i, x := range s.sites {
		got := x.account.Projection.Waits
		all.Started = all.Started.Add(got.Started)
		if got.Started.Sign() < 0 {
			return fmt.Errorf("%s waited %v", x.name, got.Started)
		}
		if got.Started = (sched.Int128{}); got != want[i] || x.waits.booked != booked[i] {
			return fmt.Errorf("%s: %+v wait with %v, recounted %+v with %v", x.name, got, x.waits.booked, want[i], booked[i])
		}
		if x.present() {
			all.Units += got.Units
			all.Released = all.Released.Add(got.Released)
		}
		if x.waits.cores != coresOf(x) || x.waits.noted {
			return fmt.Errorf("%s has %d cores, its queues know of %d", x.name, coresOf(x), x.waits.cores)
		}
	}
	if all != w.all || len(w.changed) > 0 || len(w.changes) != len(s.sites) || w.queues.Sites() != len(s.sites) {
		return fmt.Errorf("all wait %+v, recounted %+v", w.all, all)
	}
	return nil
}
