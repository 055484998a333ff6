package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// share is a quota of sites: each may have an equal part of total, and at least
// floor. What a site may have depends on how many there are, never on what another
// one has.
type share struct{ total, floor uint64 }

// of is one site's quota among so many members.
func (q share) of(members int) uint64 { return max(q.floor, q.total/uint64(max(members, 1))) }

// limits are one site's quotas. They guard the memory of all members.
type limits struct {
	tasks     uint64 // of its open jobs, that have not ended
	jobs      uint64 // open
	bytes     uint64 // of open jobs' specs
	kept      uint64 // ended jobs; the oldest leave
	keptBytes uint64 // of their specs and runs; the oldest leave, but never the last
	records   uint64 // of ended tasks; those of the oldest ended jobs go
	numbers   uint64 // jobs, and ranges of numbers of jobs that left
}

// limitsOf are the quotas of a site among so many members.
func (b *bounds) limitsOf(members int) limits {
	l := limits{
		tasks: b.tasks.of(members), jobs: b.jobs.of(members), bytes: b.bytes.of(members),
		kept: b.kept.of(members), keptBytes: b.keptBytes.of(members), records: b.records.of(members),
	}
	l.numbers = l.jobs + l.kept + b.gaps
	return l
}

// runBytes is what a run of equal ends takes.
const runBytes = 24

// bytes is what a job's spec takes. What jobs have in common counts for each: what a
// site has must not depend on what others have.
func (j *job) bytes() uint64 { return j.class.Bytes() + uint64(len(j.payload.data)) }

// keptBytes is what an ended job takes.
func (j *job) keptBytes() uint64 { return j.bytes() + runBytes*uint64(j.tasks.runs.Len()) }

// use is what a site has of what has quotas. Derived, and the site's alone.
type use struct {
	tasks     uint64 // of open jobs, that have not ended
	bytes     uint64 // of open jobs
	keptBytes uint64 // of ended jobs
	records   uint64 // in its jobs
}

// openJobs is how many of the site's jobs have not ended.
func (x *site) openJobs() uint64 { return uint64(len(x.nums) - x.ended.Len()) }

// numbers is how many jobs and ranges of numbers are remembered of the site.
func (x *site) numbers() uint64 { return uint64(len(x.nums) + len(x.retired)) }

// keptMost is how many ended jobs of a site stay.
func (s *quotas) keptMost() uint64 { return min(uint64(s.params.RetainJobs), s.limits.kept) }

// excess is what a site has of ended jobs beyond its quotas, which is about to leave.
// Until then it counts as if it were open, or a site could make jobs end faster than
// they leave.
func (s *quotas) excess(x *site) (jobs, bytes uint64) {
	kept := uint64(x.ended.Len())
	if most := s.keptMost(); kept > most {
		jobs = kept - most
	}
	if kept > 1 && x.use.keptBytes > s.limits.keptBytes {
		bytes = x.use.keptBytes - s.limits.keptBytes
	}
	return jobs, bytes
}

// Use is what a site has of one thing, and how much it may have.
type Use struct {
	Quota       string // one of Quotas
	Used, Limit uint64
}

// Drops reports whether the oldest goes where the quota is used up; by the others
// what comes is refused.
func (u *Use) Drops() bool {
	return u.Quota == command.QuotaKept || u.Quota == command.QuotaKeptBytes || u.Quota == command.QuotaRecords
}

// QuotaView is what one site uses of its quotas.
type QuotaView struct {
	Site string
	Uses []Use
}

// Quotas returns what a site uses of its quotas; nothing, and false, if it never
// registered.
func (s *views) Quotas(name string) (QuotaView, bool) {
	x, ok := s.byName[name]
	if !ok {
		x = &site{name: name}
	}
	l := &s.limits
	jobs, bytes := s.excess(x)
	return QuotaView{Site: x.name, Uses: []Use{
		{command.QuotaTasks, x.use.tasks, l.tasks},
		{command.QuotaJobs, x.openJobs() + jobs, l.jobs},
		{command.QuotaBytes, x.use.bytes + bytes, l.bytes},
		{command.QuotaShapes, uint64(len(x.open)), uint64(s.bounds.shapes)},
		{command.QuotaNumbers, x.numbers(), l.numbers},
		{command.QuotaKept, uint64(x.ended.Len()), s.keptMost()},
		{command.QuotaKeptBytes, x.use.keptBytes, l.keptBytes},
		{command.QuotaRecords, x.use.records, l.records},
	}}, ok
}

// AllQuotas returns what each site uses, by site.
func (s *views) AllQuotas() []QuotaView {
	out := make([]QuotaView, 0, len(s.order))
	for _, x := range s.order {
		v, _ := s.Quotas(x.name)
		out = append(out, v)
	}
	return out
}

// Admits is why the state would refuse a job of a site now; OK if it would not. It
// says nothing of the job's number being used before.
func (s *views) Admits(name string, j *command.JobSpec) command.Code {
	x := s.byName[name]
	if x == nil {
		return command.UnknownSite
	}
	h := j.Shape()
	return s.refusal(x, j, &h)
}

// refusal is by which quota of its site a job cannot be taken; OK if it can. Num 0
// stands for one that may be had. h is the job's requirement.
func (s *quotas) refusal(x *site, j *command.JobSpec, h *command.Shape) command.Code {
	l := &s.limits
	jobs, bytes := s.excess(x)
	switch {
	case x.use.tasks+uint64(j.Count) > l.tasks:
		return command.TooManyTasks
	case x.openJobs()+jobs >= l.jobs:
		return command.TooManyJobs
	case x.use.bytes+bytes+h.Bytes()+uint64(len(j.Payload)) > l.bytes:
		return command.TooManyBytes
	case s.numbersFull(x, j.Num):
		return command.TooManyNumbers
	case len(x.open) >= s.bounds.shapes:
		if c := s.findClass(h); c == nil || x.findOpening(c) < 0 {
			return command.TooManyShapes
		}
	}
	return command.OK
}

// numbersFull reports whether too many ranges of numbers are remembered for one more
// job. A number below all of them closes a gap that keeps them apart, so it is taken
// for longer, or it would never come in.
func (s *quotas) numbersFull(x *site, num uint64) bool {
	most := s.limits.numbers
	if len(x.retired) > 0 && num < x.retired[0].From {
		most += s.limits.jobs
	}
	return x.numbers() >= most
}

// countUse counts a job that was restored.
func (s *fleet) countUse(seq uint64, j *job) {
	x := s.sites[j.owner]
	if j.tasks != nil {
		x.use.records += uint64(j.tasks.records.Len())
	}
	if j.over() {
		x.ended.Insert(x.ended.End(), seq) // by seq; see snapReader.quotas
		x.use.keptBytes += j.keptBytes()
		return
	}
	j.class.opened(x)
	x.openSeqs.Insert(x.openSeqs.End(), seq) // jobs come in order
	x.use.tasks += uint64(j.count)
	if j.tasks != nil {
		x.use.tasks -= uint64(j.tasks.endedTasks())
	}
	x.use.bytes += j.bytes()
}

// mostNumbers is how many jobs and ranges of numbers a site can have: as many as one
// that is alone, and had gaps to close.
func (b *bounds) mostNumbers() uint64 {
	l := b.limitsOf(1)
	return l.numbers + l.jobs
}

// join counts a site as a member, or no more: when its departure is over it shares
// nothing.
func (s *quotas) join(by int) {
	s.members += by
	s.limits = s.bounds.limitsOf(s.members)
	s.recrowd = s.recrowd || by >= 0
}

// The floors suffice for any one job.
const (
	_ = uint(floorTasks - command.MaxCount)
	_ = uint(floorBytes - command.MaxPayload - 2*command.MaxSiteNames*64 - command.MaxSelectors*(command.MaxSelectorText+1))
)
