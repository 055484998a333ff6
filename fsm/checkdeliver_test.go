package fsm

import "fmt"

// checkDeliveries compares each owner's list of deliveries with a scan of all jobs, and what both show.
func (s *State) checkDeliveries() error {
	all := map[string]int{}
	for seq, j := range s.jobs.All() {
		last := int64(-1)
		owner := s.sites[j.owner]
		for d := range j.tasks.delivering().All() {
			_, live := s.live[taskKey{seq, d.task}]
			_, ended := j.tasks.findRun(d.task)
			if live || ended || j.tasks.findBack(d.task) != nil || int64(d.task) <= last || d.task >= j.next {
				return fmt.Errorf("task %d/%d is delivering and elsewhere, after task %d", seq, d.task, last)
			}
			last = int64(d.task)
			if !j.delivers || d.site == j.owner || d.attempt > d.last || d.doubts > s.bounds.doubts ||
				owner.gone && !s.hasChore(owner.id) {
				return fmt.Errorf("task %d/%d delivers: %+v", seq, d.task, d)
			}
			k := deliveryKey{d.since, seq, d.task}
			at := owner.delivering.Search(func(o *deliveryKey) bool { return o.compare(k) >= 0 })
			if o := owner.delivering.Get(at); o == nil || *o != k || owner.deliveryAt < d.since {
				return fmt.Errorf("task %d/%d is not in its owner's list", seq, d.task)
			}
			all[owner.name]++
			v := s.viewTask(seq, j, d.task)
			if v.State != Running || !v.Delivering || v.Reason == "" || v.Site == owner.name {
				return fmt.Errorf("task %d/%d is shown as %+v", seq, d.task, v)
			}
		}
	}
	for _, x := range s.sites {
		list := s.Deliveries(x.name)
		if len(list) != all[x.name] || x.settledAt > s.index || x.unwanted > s.index {
			return fmt.Errorf("%s has %d deliveries, %d are listed", x.name, all[x.name], len(list))
		}
		for _, d := range list {
			if !s.OutputsWanted(d.Site, d.AttemptRef) || d.Since > s.index || d.SinceMs > s.time {
				return fmt.Errorf("%s is to fetch %+v, which nobody keeps", x.name, d)
			}
		}
	}
	return nil
}
