package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// share is a quota of sites: each may have an equal part of total, and at least floor. What a site may have
// depends on how many sites there are, never on what another one has.
type share struct{ total, floor uint64 }

// of returns one site's quota among that many members.
func (q share) of(members int) uint64 { return max(q.floor, q.total/uint64(max(members, 1))) }

// limits are one site's quotas. They protect the memory of all members.
type limits struct {
	tasks     uint64 // of its open jobs, not ended
	jobs      uint64 // open
	bytes     uint64 // of its open jobs' specs
	kept      uint64 // ended jobs; beyond it the oldest leave
	keptBytes uint64 // of their specs and runs; beyond it the oldest leave, but never the last
	records   uint64 // of ended tasks; beyond it those of the oldest ended jobs are dropped
	numbers   uint64 // jobs, and ranges of numbers of jobs that left
	// delivering are tasks whose outputs it has not fetched; what comes beyond counts as lost.
	delivering uint64
}

// limitsOf returns the quotas of a site among that many members.
func (b *bounds) limitsOf(members int) limits {
	l := limits{
		tasks: b.tasks.of(members), jobs: b.jobs.of(members), bytes: b.bytes.of(members),
		kept: b.kept.of(members), keptBytes: b.keptBytes.of(members), records: b.records.of(members),
		delivering: b.delivering.of(members),
	}
	l.numbers = l.jobs + l.kept + b.gaps
	return l
}

// runBytes is the size of a run of equal ends.
const runBytes = 24

// bytes returns the size of a job's spec. What jobs share counts for each of them: a site's use must not
// depend on what others have.
func (j *job) bytes() uint64 { return j.class.Bytes() + uint64(len(j.payload.data)) }

// keptBytes returns the size of an ended job.
func (j *job) keptBytes() uint64 { return j.bytes() + runBytes*uint64(j.tasks.runs.Len()) }

// use is how much of each quota a site uses. It is derived, and of this site alone.
type use struct {
	tasks     uint64 // of open jobs, not ended
	bytes     uint64 // of open jobs
	keptBytes uint64 // of ended jobs
	records   uint64 // in its jobs
}

// openJobs returns how many of the site's jobs have not ended.
func (x *site) openJobs() uint64 { return uint64(len(x.nums) - x.ended.Len()) }

// numbers returns how many jobs and ranges of numbers are remembered of the site.
func (x *site) numbers() uint64 { return uint64(len(x.nums) + len(x.retired)) }

// keptMost returns how many ended jobs of a site stay.
func (s *quotas) keptMost() uint64 { return min(uint64(s.params.RetainJobs), s.limits.kept) }

// excess returns what a site has of ended jobs beyond its quotas and will leave soon. Until then it counts
// as open; otherwise a site could make jobs end faster than they leave.
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

// Use is how much of one quota a site uses, and its limit.
type Use struct {
	Quota       string // one of Quotas
	Used, Limit uint64
}

// Drops reports whether the oldest is dropped when the quota is used up; with other quotas new work is
// refused.
func (u *Use) Drops() bool {
	return u.Quota == command.QuotaKept || u.Quota == command.QuotaKeptBytes || u.Quota == command.QuotaRecords
}

// QuotaView is what one site uses of its quotas.
type QuotaView struct {
	Site string
	Uses []Use
}

// Quotas returns what a site uses of its quotas; false, with nothing used, if it never registered.
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

// Admits returns why the state would refuse a job of a site now, OK if it would not. It does not check
// whether the job's number was used before.
func (s *views) Admits(name string, j *command.JobSpec) command.Code {
	x := s.byName[name]
	if x == nil {
		return command.UnknownSite
	}
	h := j.Shape()
	return s.refusal(x, j, &h)
}

// refusal returns the code of the quota because of which a job of a site cannot be accepted, OK if it can.
// Num 0 means that the number does not matter. h is the job's requirement.
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

// numbersFull reports whether too many ranges of numbers are remembered for one more job. A number below
// all of them closes a gap that keeps them apart. It has a higher limit, or it could never be accepted.
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

// mostNumbers returns how many jobs and ranges of numbers a site can have: as many as a site that is alone
// and had gaps to close.
func (b *bounds) mostNumbers() uint64 {
	l := b.limitsOf(1)
	return l.numbers + l.jobs
}

// join counts a site as a member (by 1) or no longer (by −1): when its departure is over it has no share.
func (s *quotas) join(by int) {
	s.members += by
	s.limits = s.bounds.limitsOf(s.members)
	s.recrowd = s.recrowd || by >= 0
}

// The floors are enough for any single job.
const (
	_ = uint(floorTasks - command.MaxCount)
	_ = uint(floorBytes - command.MaxPayload - 2*command.MaxSiteNames*64 -
		command.MaxSelectors*(command.MaxSelectorText+1))
)
