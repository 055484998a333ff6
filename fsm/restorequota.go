package fsm

import (
	"cmp"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// quotas adds all restored jobs to the order in which they leave. It refuses what no site could have: a
// site's quotas were never more than those of a site that is alone.
func (r *snapReader) quotas(s *State) {
	most := s.bounds.limitsOf(1)
	for _, x := range s.sites {
		if !x.gone {
			s.members++
		}
		if n := x.ended.Len(); n > 0 {
			x.ended.Sort(func(a, b uint64) int { return cmp.Compare(s.jobs.Get(a).endedMs, s.jobs.Get(b).endedMs) })
			s.kept += n
			x.oldestMs = s.jobs.Get(*x.ended.First()).endedMs
			s.keepers.Push(x)
		}
		for _, u := range [...]Use{
			{command.QuotaTasks, x.use.tasks, most.tasks},
			{command.QuotaJobs, x.openJobs(), most.jobs},
			{command.QuotaBytes, x.use.bytes, most.bytes},
			{command.QuotaShapes, uint64(len(x.open)), uint64(s.bounds.shapes)},
			{command.QuotaNumbers, x.numbers(), s.bounds.mostNumbers()},
			{command.QuotaRecords, x.use.records, most.records},
			{"deliveries", uint64(x.delivering.Len()), most.delivering},
			{"attempts", uint64(x.live.n), uint64(s.bounds.held)},
		} {
			if u.Used > u.Limit {
				r.fail("site %s has %d %s, at most %d can be", x.name, u.Used, u.Quota, u.Limit)
			}
		}
	}
	s.limits = s.bounds.limitsOf(s.members)
	s.crowdAll()
}
