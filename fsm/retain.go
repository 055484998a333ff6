package fsm

import (
	"cmp"
	"container/heap"
	"slices"
	"sort"
)

// keep enters a job that just ended into the order in which its site's jobs leave.
func (s *State) keep(seq uint64, j *job) {
	x := s.sites[j.owner]
	at := len(x.ended) // nearly always: log time never falls
	if at > 0 && x.ended[at-1] > seq {
		at = sort.Search(at, func(i int) bool {
			o := s.jobs.get(x.ended[i])
			return o.endedMs > j.endedMs || o.endedMs == j.endedMs && x.ended[i] > seq
		})
	}
	x.ended = slices.Insert(x.ended, at, seq)
	x.trimmed = min(x.trimmed, at)
	s.kept++
	x.use.bytes -= j.bytes()
	x.use.keptBytes += j.keptBytes()
	if len(x.ended) == 1 {
		x.oldestMs = j.endedMs
		heap.Push((*keepers)(s), x)
	}
	s.crowd(x)
}

// crowd notes a site that keeps more than it may.
func (s *State) crowd(x *site) {
	if !x.crowded && s.keepsTooMuch(x) {
		x.crowded = true
		s.crowded = append(s.crowded, x)
	}
}

// crowdAll does so for all sites, after the quotas changed.
func (s *State) crowdAll() {
	for _, x := range s.sites {
		s.crowd(x)
	}
}

func (s *State) keepsTooMuch(x *site) bool {
	jobs, bytes := s.excess(x)
	return jobs > 0 || bytes > 0
}

// retain lets ended jobs leave: of each site the oldest beyond its quotas, then those
// beyond their age, all sites' oldest first. Their numbers stay refused. What does not
// leave in this entry does in the next ones.
func (s *State) retain() {
	left := s.bounds.retire
	if len(s.crowded) == 0 && !s.isAged() {
		return
	}
	gone := map[*site][]uint64{} // numbers, by owner
	slices.SortFunc(s.crowded, func(a, b *site) int { return cmp.Compare(a.id, b.id) })
	s.crowded = slices.DeleteFunc(s.crowded, func(x *site) bool {
		for ; s.keepsTooMuch(x); left-- {
			if left == 0 {
				return false
			}
			s.leave(x, gone)
		}
		x.crowded = false
		return true
	})
	for ; left > 0 && s.isAged(); left-- {
		s.leave(s.keepers[0], gone)
	}
	for x, nums := range gone { // each by itself: the order is all one
		x.retired = x.retired.with(nums)
	}
}

// isAged reports whether the oldest ended job is older than ended jobs may be.
func (s *State) isAged() bool {
	return len(s.keepers) > 0 && s.keepers[0].oldestMs <= s.time-s.params.RetainMs
}

// leave removes a site's oldest ended job.
func (s *State) leave(x *site, gone map[*site][]uint64) {
	seq := x.ended[0]
	x.ended = x.ended[1:]
	x.trimmed = max(0, x.trimmed-1)
	s.kept--
	if len(x.ended) == 0 {
		heap.Remove((*keepers)(s), x.keeperAt)
	} else if ms := s.jobs.get(x.ended[0]).endedMs; ms != x.oldestMs {
		x.oldestMs = ms
		heap.Fix((*keepers)(s), x.keeperAt)
	}
	j := s.jobs.get(seq)
	delete(x.nums, j.num)
	if j.num >= x.settled {
		gone[x] = append(gone[x], j.num)
	}
	x.use.keptBytes -= j.keptBytes()
	x.use.records -= uint64(len(j.tasks.records))
	s.releaseClass(j.class)
	s.releasePayload(j.payload)
	s.jobs.drop(seq, s.epoch)
}

// keepRecord keeps an ended task's details. If its site has as many already as it may,
// those of its oldest ended jobs go; if all are of open jobs, this one is not kept.
func (s *State) keepRecord(j *job, t *taskSet, r record) {
	if j.count > s.bounds.detail {
		return
	}
	x := s.sites[j.owner]
	if s.trim(x, s.limits.records-1); x.use.records >= s.limits.records {
		return
	}
	x.use.records++
	t.addRecord(r)
}

// trim drops the task records of a site's oldest ended jobs beyond a number.
func (s *State) trim(x *site, most uint64) {
	for x.use.records > most && x.trimmed < len(x.ended) {
		t := s.mutJob(x.ended[x.trimmed]).set(s.epoch)
		x.use.records -= uint64(len(t.records))
		t.records = nil
		x.trimmed++
	}
}

// keepers is State.keepers as a heap by (end of the oldest ended job, site), so that
// an entry looks at the first age only.
type keepers State

var _ heap.Interface = (*keepers)(nil)

// Len implements heap.Interface.
func (k *keepers) Len() int { return len(k.keepers) }

// Less implements heap.Interface; no two are equal.
func (k *keepers) Less(i, o int) bool {
	a, b := k.keepers[i], k.keepers[o]
	if a.oldestMs != b.oldestMs {
		return a.oldestMs < b.oldestMs
	}
	return a.id < b.id
}

// Swap implements heap.Interface.
func (k *keepers) Swap(i, o int) {
	k.keepers[i], k.keepers[o] = k.keepers[o], k.keepers[i]
	k.keepers[i].keeperAt, k.keepers[o].keeperAt = i, o
}

// Push implements heap.Interface.
func (k *keepers) Push(x any) {
	k.keepers = append(k.keepers, x.(*site))
	k.keepers[len(k.keepers)-1].keeperAt = len(k.keepers) - 1
}

// Pop implements heap.Interface.
func (k *keepers) Pop() any {
	last := len(k.keepers) - 1
	x := k.keepers[last]
	k.keepers = k.keepers[:last]
	return x
}
