package fsm

import (
	"fmt"
	"slices"
)

// checkGating compares where tasks of gated jobs stand with a look at each of them, each owner's list with a scan of
// all jobs, and what reads tell with both.
func (s *State) checkGating() error {
	again, held := map[string]int{}, map[string]uint64{}
	for seq, j := range s.jobs.All() {
		g := j.tasks.gating()
		if !j.gated && g != nil || j.gated && (j.next != j.count || j.over() && g != nil) {
			return fmt.Errorf("job %d, gated %v, over %v, has range %d to %d", seq, j.gated, j.over(), j.next, j.count)
		}
		owner := s.sites[j.owner]
		held[owner.name] += uint64(j.heldTasks())
		if g != nil {
			again[owner.name] += g.again.Len()
			if err := s.checkPlaces(seq, j, g); err != nil {
				return fmt.Errorf("job %d: %w", seq, err)
			}
		}
		if err := s.checkGatesView(j); err != nil {
			return fmt.Errorf("job %d: %w", seq, err)
		}
	}
	for _, x := range s.sites {
		list := s.ReturnedTasks(x.name)
		if len(list) != again[x.name] || x.held != held[x.name] || x.againAt > s.index || x.againLeft > s.index {
			return fmt.Errorf("%s has %d held tasks, %d that ran, counted are %d, %d", x.name, held[x.name], again[x.name], x.held, len(list))
		}
		if !slices.IsSortedFunc(values(&x.again), deliveryKey.compare) {
			return fmt.Errorf("held tasks of %s are in disorder", x.name)
		}
		for _, v := range list {
			j := s.jobs.Get(s.findJob(v.Job))
			b := j.tasks.findAgain(v.Task)
			if b == nil || b.since != v.Since || v.Since > s.index ||
				b.queuedMs > s.time || b.doubts > s.bounds.doubts ||
				b.last != nil && (b.last.task != v.Task || j.count > s.bounds.detail) {
				return fmt.Errorf("%s lists %+v", x.name, v)
			}
		}
	}
	return nil
}

// checkPlaces checks that each task is in one place, and that spans are joined.
func (s *State) checkPlaces(seq uint64, j *job, g *gating) error {
	for i := range min(j.count, 100_000) {
		places := 0
		_, live := s.live[taskKey{seq, i}]
		_, ended := j.tasks.findRun(i)
		for _, is := range [...]bool{
			live, ended, j.tasks.findBack(i) != nil, j.tasks.findDelivery(i) != nil, j.tasks.findAgain(i) != nil,
			findSpan(&g.held.list, i) != nil, findSpan(&g.released.list, i) != nil,
		} {
			places += btoi(is)
		}
		if places != 1 {
			return fmt.Errorf("task %d is in %d places", i, places)
		}
	}
	for _, l := range []*spans{&g.held, &g.released} {
		tasks, last := uint32(0), span{}
		for v := range l.list.All() {
			if tasks > 0 && (v.from < last.to || v.from == last.to && v.queuedMs == last.queuedMs) || v.from >= v.to ||
				l == &g.held && v.queuedMs != 0 || v.queuedMs > s.time {
				return fmt.Errorf("span %+v behind %+v", *v, last)
			}
			tasks, last = tasks+v.to-v.from, *v
		}
		if tasks != l.tasks {
			return fmt.Errorf("%d tasks in spans, %d counted", tasks, l.tasks)
		}
	}
	return nil
}

// checkGatesView reads a job's gates in parts and compares them with its tasks.
func (s *State) checkGatesView(j *job) error {
	if j.count > 100_000 { // what it costs to look at each task
		return nil
	}
	id := s.idOf(j)
	got := map[uint32]string{}
	for from, n := uint32(0), uint32(0); n == 0 || from > 0; n++ {
		v, ok := s.Gates(id, from, 1)
		if !ok || v.Gated != j.gated || n > j.count || v.Next != 0 && v.Next <= from {
			return fmt.Errorf("gates of %s from %d: %+v, %v", id, from, v, ok)
		}
		for name, runs := range map[string][]TaskRun{"held": v.Held, "queued": v.Queued} {
			for _, r := range runs {
				for i := r.From; i < r.To; i++ {
					got[i] += name
				}
			}
		}
		for _, b := range v.Returned {
			got[b.Task] += "again"
		}
		from = v.Next
	}
	for i := range j.count {
		want := ""
		switch v := s.viewTask(s.findJob(id), j, i); {
		case !j.gated:
		case findSpan(j.heldSpans(), i) != nil:
			want = "held"
		case j.tasks.findAgain(i) != nil:
			want = "again"
		case (v.State == Queued || v.State == Withdrawn) && v.Attempt == 0 && findSpan(j.tasks.released(), i) != nil:
			want = "queued"
		}
		if got[i] != want {
			return fmt.Errorf("task %d is read as %q, is %q", i, got[i], want)
		}
	}
	return nil
}
