package fsm

import (
	"cmp"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/internal/store"
)

// keep adds a job that just ended to the order in which its site's jobs leave.
func (s *lifecycle) keep(seq uint64, j *job) {
	x := s.sites[j.owner]
	at := x.ended.End() // nearly always: log time never decreases
	if last := x.ended.Final(); last != nil && *last > seq {
		at = x.ended.Search(func(o *uint64) bool {
			ms := s.jobs.Get(*o).endedMs
			return ms > j.endedMs || ms == j.endedMs && *o > seq
		})
		x.trimmed = min(x.trimmed, x.ended.Rank(at))
	}
	x.ended.Insert(at, seq)
	s.kept++
	x.use.bytes -= j.bytes()
	x.use.keptBytes += j.keptBytes()
	if x.ended.Len() == 1 {
		x.oldestMs = j.endedMs
		s.keepers.Push(x)
	}
	s.crowd(x)
}

// crowd records a site that keeps more than it may.
func (s *quotas) crowd(x *site) {
	if !x.crowded && s.keepsTooMuch(x) {
		x.crowded = true
		s.crowded = append(s.crowded, x)
	}
}

// crowdAll does so for all sites, after the quotas changed.
func (s *quotas) crowdAll() {
	for _, x := range s.sites {
		s.crowd(x)
	}
}

func (s *quotas) keepsTooMuch(x *site) bool {
	jobs, bytes := s.excess(x)
	return jobs > 0 || bytes > 0
}

// retain lets ended jobs leave: of each site the oldest beyond its quotas, then those beyond their age, the
// oldest of all sites first. Their numbers remain refused. What does not leave in this entry leaves in the
// next ones.
func (s *State) retain() {
	left := s.bounds.retire
	if s.recrowd { // once an entry, however many sites join
		s.crowdAll()
		s.recrowd = false
	}
	if len(s.crowded) == 0 && !s.isAged() {
		return
	}
	slices.SortFunc(s.crowded, func(a, b *site) int { return cmp.Compare(a.id, b.id) })
	s.crowded = slices.DeleteFunc(s.crowded, func(x *site) bool {
		for ; s.keepsTooMuch(x); left-- {
			if left == 0 {
				return false
			}
			s.leave(x)
		}
		x.crowded = false
		return true
	})
	for ; left > 0 && s.isAged(); left-- {
		s.leave(*s.keepers.First())
	}
	for _, x := range s.retiring {
		x.retired = x.retired.With(x.retiring)
		if x.retiring = x.retiring[:0]; cap(x.retiring) > store.MostPiece {
			x.retiring = nil
		}
	}
	clear(s.retiring)
	s.retiring = s.retiring[:0]
}

// isAged reports whether the oldest ended job is older than ended jobs may be.
func (s *quotas) isAged() bool {
	return s.keepers.Len() > 0 && (*s.keepers.First()).oldestMs <= s.time-s.params.RetainMs
}

// leave removes a site's oldest ended job.
func (s *State) leave(x *site) {
	seq := *x.ended.First()
	x.ended.Remove(store.Place{})
	x.trimmed = max(0, x.trimmed-1)
	s.kept--
	if x.ended.Len() == 0 {
		s.keepers.Remove(x.keeperAt)
	} else if ms := s.jobs.Get(*x.ended.First()).endedMs; ms != x.oldestMs {
		x.oldestMs = ms
		s.keepers.Fix(x.keeperAt)
	}
	j := s.jobs.Get(seq)
	delete(x.nums, j.num)
	if j.num >= x.settled {
		if len(x.retiring) == 0 {
			s.retiring = append(s.retiring, x)
		}
		x.retiring = append(x.retiring, j.num)
	}
	x.use.keptBytes -= j.keptBytes()
	x.use.records -= uint64(j.tasks.records.Len())
	s.releaseClass(j.class)
	s.releasePayload(j.payload)
	s.jobs.Drop(seq, s.epoch)
}

// keepRecord keeps an ended task's details. If its site already has as many as it may, those of its oldest
// ended jobs are dropped; if all are of open jobs, this one is not kept.
func (s *lifecycle) keepRecord(j *job, t *taskSet, r record) {
	if s.mayKeep(j) {
		s.sites[j.owner].use.records++
		t.addRecord(r)
	}
}

// mayKeep reports whether one more record of a job's tasks may be kept, and makes room for it if it can.
func (s *lifecycle) mayKeep(j *job) bool {
	if j.count > s.bounds.detail {
		return false
	}
	x := s.sites[j.owner]
	s.trim(x, s.limits.records-1)
	return x.use.records < s.limits.records
}

// trim drops the task records of a site's oldest ended jobs beyond a number.
func (s *lifecycle) trim(x *site, most uint64) {
	if x.use.records <= most {
		return
	}
	for seq := range x.ended.From(x.ended.Nth(x.trimmed)) {
		x.trimmed++
		// Most have none, after Restore: no page is copied for those.
		if n := uint64(s.jobs.Get(*seq).tasks.records.Len()); n > 0 {
			s.mutJob(*seq).set(s.epoch).records = store.Sorted[record]{}
			if x.use.records -= n; x.use.records <= most {
				return
			}
		}
	}
}

// leavesBefore orders sites by the end of their oldest ended jobs; no two are equal.
func (x *site) leavesBefore(y *site) bool {
	if x.oldestMs != y.oldestMs {
		return x.oldestMs < y.oldestMs
	}
	return x.id < y.id
}
