package fsm

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/internal/store"
	"github.com/cloudshare/cloudshare/sched"
)

// leastCores is how many cores a coalition is counted with that lends none.
const leastCores = 1

// waits is what the policies of projected waits need; it exists while one of them is in force. Times are in
// quanta, units are cores (see widthOf).
//
// Commands record in changes what they do to the virtual queues. All changes of an entry are applied to the
// queues at once, before its match (flushWaits).
type waits struct {
	since  int64 // the policy counts from this time
	queues *sched.Coalitions
	// What existed when the policy began is entered by job and task, over several entries if it is much.
	// What comes from next on, except jobs from limit on, is not yet entered: it does not exist for the
	// virtual queues.
	next  taskKey // task 0: nothing of its job is entered; else one more than that of a live attempt
	limit uint64  // nextSeq when the policy began, 0 once everything is entered

	// Derived.
	all     sched.Waits // of all sites; of absent ones only what they waited before
	changes []sched.Change
	changed []int32 // sites with a change in this entry; Invariant: empty between entries
	// again counts, by job, tasks that were requeued in this entry, or got their attempts back, each one
	// more release. Invariant: empty between entries
	again map[uint64]int64
	due   store.Heap[due]
	// sweep is where in due the last assignment looked for entries that no longer count.
	sweep int
	// queued and ahead are for all ranks of an entry. queued is what waited when its match began or, if
	// the match was cut, when the last work that came before it was done. ahead is what they will go on
	// waiting, as of the first rank (in entry aheadAt). An assignment does not change what was waited
	// until now, so it makes no difference when that is computed.
	queued  int64
	aheadAt uint64
	ahead   sched.Int128
	scratch sched.Account
}

// waitSite is a site's part; all zero while no such policy is in force.
type waitSite struct {
	from int64 // nothing that it waited before this counts: since, or its last return
	// ran units of its tasks ended lately and ran for ranSum quanta in total; both are halved from time
	// to time.
	ran, ranSum int64

	// Derived.
	booked sched.Int128 // estimated lengths of everything that waits, times widths
	cores  int64        // as its virtual queues know them
	noted  bool         // it is in waits.changed
	backAt uint64       // entry in which everything that it had waiting was released: its last return
}

// Estimates of lengths: a length that was not declared is the mean of what the owner's tasks ran lately,
// together with one task of priorMs.
const (
	priorMs  = 3_600_000
	ranTasks = 1024
)

// widthOf returns how many cores, as units, a task counts for.
func widthOf(need command.Resources) int64 { return (need.MilliCPU + 999) / 1000 }

// lengthOf returns a task's estimated length in quanta.
func (s *ranking) lengthOf(x *site, timeoutMs int64) int64 {
	length := s.quanta(timeoutMs)
	if timeoutMs == 0 {
		length = (s.quanta(priorMs) + x.waits.ranSum) / (1 + x.waits.ran)
	}
	return max(1, min(length, sched.MaxNow))
}

// hasJob reports whether a job is entered, perhaps without some of its live attempts.
func (w *waits) hasJob(seq uint64) bool {
	return seq >= w.limit || seq < w.next.seq || seq == w.next.seq && w.next.task > 0
}

// has reports whether a task's live attempt is entered.
func (w *waits) has(seq uint64, task uint32) bool {
	return seq >= w.limit || seq < w.next.seq || seq == w.next.seq && task+1 < w.next.task
}

// ignores reports whether what waits of a job does not count, or not yet.
func (s *ranking) ignores(j *job) bool {
	return s.waits == nil || s.waits.limit > 0 && !s.waits.hasJob(s.sites[j.owner].nums[j.num])
}

// changeOf returns a site's change of this entry for writing.
func (s *ranking) changeOf(x *site) *sched.Change {
	if !x.waits.noted {
		x.waits.noted = true
		s.waits.changed = append(s.waits.changed, x.id)
	}
	return &s.waits.changes[x.id]
}

// floorOf returns when a task of the site counts as released, in quanta.
func (s *ranking) floorOf(x *site, queuedMs int64) int64 {
	return max(s.quanta(queuedMs), x.waits.from)
}

// waitMore counts n more tasks of a job that have waited since queuedMs; n may be negative.
func (s *ranking) waitMore(x *site, j *job, n, queuedMs int64) {
	n *= widthOf(j.class.Need)
	at := s.floorOf(x, queuedMs)
	x.account.Projection.Wait(n, at)
	x.waits.booked = x.waits.booked.Add(sched.Mul64(n, j.booked))
	if x.present() {
		s.waits.all.Wait(n, at)
	}
}

// noteSubmitted counts a new job.
func (s *ranking) noteSubmitted(x *site, j *job) {
	if s.waits == nil {
		return
	}
	j.booked = s.lengthOf(x, j.timeoutMs)
	s.waitMore(x, j, int64(j.waiting()), j.queuedMs)
	s.changeOf(x).New.Add(int64(j.waiting())*widthOf(j.class.Need), j.booked, 0)
}

// noteRequeued counts a task that waits again from now on.
func (s *ranking) noteRequeued(j *job) {
	if !s.ignores(j) {
		s.waitMore(s.sites[j.owner], j, 1, s.time)
	}
}

// noteResumed counts a task that waited since queuedMs and has its attempt back, as if it had not waited. What
// an absent site had waiting has left the virtual queues, so the task returns as released when the attempt
// was.
func (s *ranking) noteResumed(j *job, a *attempt, queuedMs int64) {
	if s.ignores(j) {
		return
	}
	x, width := s.sites[j.owner], widthOf(j.class.Need)
	s.waitMore(x, j, -1, queuedMs)
	switch {
	case s.waits.has(a.seq, a.task):
		if !x.present() {
			s.changeOf(x).Past.Add(width, j.booked, s.releasedAt(a))
			s.countAgain(a.seq)
		}
	case x.present() && !s.takeAgain(x, j, a.seq): // its attempt is not entered yet
		s.changeOf(x).Gone.Add(width, j.booked, s.floorOf(x, queuedMs))
	}
}

// releasedAt returns when the task of a live attempt counts as released, in quanta.
func (s *ranking) releasedAt(a *attempt) int64 { return max(s.quanta(a.queuedMs), s.waits.since) }

// noteLeft removes an attempt's task whose owner is away. If the task returned in this entry, it counts as
// never having been there: the virtual queues remove what leaves before they enter what comes.
func (s *ranking) noteLeft(x *site, j *job, a *attempt) {
	c, width := s.changeOf(x), widthOf(j.class.Need)
	if s.waits.again[a.seq] > 0 && c.Past.Units >= width {
		s.waits.again[a.seq]--
		c.Past.Sub(width, j.booked, s.releasedAt(a))
		return
	}
	c.Gone.Add(width, j.booked, s.releasedAt(a))
}

// noteAgain counts one more release of a job's task in this entry.
func (s *ranking) noteAgain(x *site, j *job, seq uint64) {
	s.changeOf(x).New.Add(widthOf(j.class.Need), j.booked, 0)
	s.countAgain(seq)
}

func (s *ranking) countAgain(seq uint64) {
	if s.waits.again == nil {
		s.waits.again = map[uint64]int64{}
	}
	s.waits.again[seq]++
}

// takeAgain takes back a release of a job's task in this entry, if there was one: it counts as never having
// been there.
func (s *ranking) takeAgain(x *site, j *job, seq uint64) bool {
	again, width := s.waits.again[seq], widthOf(j.class.Need)
	if again == 0 && x.waits.backAt != s.index || s.changeOf(x).New.Units < width {
		return false
	}
	if again > 0 {
		s.waits.again[seq]--
	}
	s.changeOf(x).New.Sub(width, j.booked, 0)
	return true
}

// noteUnheld counts a task that was held and has a former attempt back, which is to end: that is one more release. If
// its owner is away, it is released as when the attempt was.
func (s *ranking) noteUnheld(j *job, a *attempt) {
	if s.ignores(j) || !s.waits.has(a.seq, a.task) {
		return
	}
	x := s.sites[j.owner]
	if x.present() {
		s.noteAgain(x, j, a.seq)
		return
	}
	s.changeOf(x).Past.Add(widthOf(j.class.Need), j.booked, s.releasedAt(a))
	s.countAgain(a.seq)
}

// noteWithdrawn counts n tasks that ended and had waited since queuedMs. What an absent site had waiting has
// already left the virtual queues.
func (s *ranking) noteWithdrawn(j *job, n, queuedMs int64) {
	if n == 0 || s.ignores(j) {
		return
	}
	x := s.sites[j.owner]
	s.waitMore(x, j, -n, queuedMs)
	switch width := widthOf(j.class.Need); {
	case !x.present():
	case s.changeOf(x).New.Units >= n*width && s.wereNew(x, j, n, queuedMs): // they count as never having been there
		s.changeOf(x).New.Sub(n*width, j.booked, 0)
	default:
		s.changeOf(x).Gone.Add(n*width, j.booked, s.floorOf(x, queuedMs))
	}
}

// noteReleased counts n tasks of a gated job that wait from now on.
func (s *ranking) noteReleased(seq uint64, j *job, n int64) {
	if s.ignores(j) {
		return
	}
	x := s.sites[j.owner]
	s.waitMore(x, j, n, s.time)
	if !x.present() {
		return
	}
	s.changeOf(x).New.Add(n*widthOf(j.class.Need), j.booked, 0)
	if s.waits.again == nil {
		s.waits.again = map[uint64]int64{}
	}
	s.waits.again[seq] += n
}

// noteSpanWithdrawn is noteWithdrawn for tasks that were released together, or one that waited: of those that wait
// since now some may have been released in this entry and some at the same time in an earlier one.
func (s *ranking) noteSpanWithdrawn(seq uint64, j *job, n, queuedMs int64) {
	if s.ignores(j) {
		return
	}
	if queuedMs == s.time {
		now := min(n, s.waits.again[seq])
		s.noteWithdrawn(j, now, queuedMs)
		n -= now
	}
	s.noteWithdrawn(j, n, queuedMs)
}

// wereNew reports whether n of a job's tasks that waited since queuedMs were released in this entry. Of a
// job's tasks that wait since the same time some may be and some not: they are alike, so those that were are
// taken first.
func (s *ranking) wereNew(x *site, j *job, n, queuedMs int64) bool {
	switch seq := x.nums[j.num]; {
	case j.entry == s.index && queuedMs == j.queuedMs:
		return true
	case x.waits.backAt == s.index:
		return true
	case queuedMs == s.time && s.waits.again[seq] >= n:
		s.waits.again[seq] -= n
		return true
	}
	return false
}

// noteAssigned counts a task that waited and starts now.
func (s *attemptTable) noteAssigned(x *site, j *job, a *attempt, slot uint64) {
	if s.waits == nil {
		return
	}
	s.expect(slot, j.booked)
	n, at, now := widthOf(j.class.Need), s.floorOf(x, a.queuedMs), s.quanta(s.time)
	x.account.Projection.Start(n, at, now)
	s.waits.all.Start(n, at, now)
	x.waits.booked = x.waits.booked.Sub(sched.Mul64(n, j.booked))
}

// noteRan gives the virtual queues the true length of an attempt that is charged for [start, end), in quanta.
// If the task waits again, that is one more release.
func (s *jobTable) noteRan(a *attempt, start, end int64) {
	if s.waits == nil {
		return
	}
	j := s.jobs.Get(a.seq)
	x := s.sites[j.owner]
	x.waits.ran, x.waits.ranSum = x.waits.ran+1, x.waits.ranSum+end-start
	if x.waits.ran >= s.bounds.ranTasks {
		x.waits.ran, x.waits.ranSum = x.waits.ran/2, x.waits.ranSum/2
	}
	s.correct(a, max(0, end-max(start, s.waits.since)))
	s.noteReturned(a)
}

// noteReturned counts one more release if the task of an attempt that was charged waits again.
func (s *jobTable) noteReturned(a *attempt) {
	if s.waits == nil || !s.waits.hasJob(a.seq) || !s.waitsAgain(a) {
		return
	}
	j := s.jobs.Get(a.seq)
	if x := s.sites[j.owner]; x.present() {
		s.noteAgain(x, j, a.seq)
	}
}

// noteNotRun records that an attempt ended uncharged. A task that waits again is still the same release, with
// the length first estimated, and leaves the virtual queues if its owner is away. For a task that ended, the
// attempt's length is 0.
func (s *jobTable) noteNotRun(a *attempt) {
	if s.waits == nil || !s.waits.hasJob(a.seq) {
		return
	}
	if !s.waitsAgain(a) {
		s.correct(a, 0)
		return
	}
	j := s.jobs.Get(a.seq)
	s.correct(a, j.booked)
	switch x := s.sites[j.owner]; {
	case !s.waits.has(a.seq, a.task): // it is released for the first time
		if x.present() {
			s.noteAgain(x, j, a.seq)
		}
	case !x.present():
		s.noteLeft(x, j, a)
	}
}

func (s *jobTable) waitsAgain(a *attempt) bool {
	return s.jobs.Get(a.seq).tasks.findBack(a.task) != nil
}

// correct records an attempt's true length, if the attempt counts.
func (s *jobTable) correct(a *attempt, length int64) {
	if !s.waits.has(a.seq, a.task) {
		return
	}
	j := s.jobs.Get(a.seq)
	c := s.changeOf(s.sites[j.owner])
	c.Corrected = c.Corrected.Add(sched.Mul64(widthOf(j.class.Need), length-a.length))
}

// noteCores records how many cores a site has.
func (s *ranking) noteCores(x *site) {
	if s.waits == nil {
		return
	}
	if cores := coresOf(x); cores != x.waits.cores {
		s.changeOf(x).Cores += cores - x.waits.cores
		x.waits.cores = cores
	}
}

// coresOf returns how many cores of a site its coalitions have: those that it lends. For what it uses itself
// there is only its own claim, and a large claim would pay.
func coresOf(x *site) int64 { return (x.exposed.MilliCPU + 999) / 1000 }

// noteAway removes what a site has waiting: it does not wait while its site is away. What it has already
// waited stays.
//
// REQUIRES: x.present() is already false, and was true.
func (s *ranking) noteAway(x *site) {
	if s.waits == nil {
		return
	}
	now, p := s.quanta(s.time), &x.account.Projection
	c := s.changeOf(x)
	c.Gone.Plus(sched.Batch{Units: p.Units, Work: x.waits.booked, Released: p.Released})
	c.Gone.Minus(sched.Batch{Units: c.New.Units, Work: c.New.Work, Released: sched.Mul64(c.New.Units, now)})
	c.New = sched.Batch{} // what came in this entry counts as never having been there
	waited := p.At(now).Sub(p.Started)
	s.waits.all.Units -= p.Units
	s.waits.all.Released = s.waits.all.Released.Sub(p.Released)
	s.waits.all.Started = s.waits.all.Started.Add(waited)
	p.Started = p.Started.Add(waited)
	s.waitFrom(x, now)
}

// noteBack makes what a site has waiting begin to wait now.
//
// REQUIRES: x.present() is already true, and was false.
func (s *ranking) noteBack(x *site) {
	if s.waits == nil {
		return
	}
	now, p := s.quanta(s.time), &x.account.Projection
	s.waitFrom(x, now)
	s.waits.all.Wait(p.Units, now)
	x.waits.backAt = s.index
	s.changeOf(x).New.Plus(sched.Batch{Units: p.Units, Work: x.waits.booked})
}

// waitFrom makes what the site waited before a time not count.
func (s *ranking) waitFrom(x *site, at int64) {
	x.waits.from = at
	x.account.Projection.Released = sched.Mul64(x.account.Projection.Units, at)
}

// noteJoined adds a new site, which begins like the others, with nothing.
func (s *ranking) noteJoined(x *site) {
	if s.waits == nil {
		return
	}
	x.waits.from = s.quanta(s.time)
	s.waits.changes = append(s.waits.changes, sched.Change{})
	s.waits.queues.Join(x.waits.from, s.epoch)
}

// flushWaits applies what this entry recorded, before its match. resumes says that the match continues with
// what waited when it began. What chores returned, or a policy entered, while it was cut waits as well: then
// what waits is counted again, as with commands.
func (s *State) flushWaits(resumes bool) {
	w := s.waits
	if w == nil {
		return
	}
	if !resumes {
		w.queued = min(w.all.Units, sched.MaxUnits) // ranks consider no more
	}
	clear(w.again)
	if s.prolong(); len(w.changed) == 0 {
		return
	}
	changed := w.changed[:0]
	for _, id := range w.changed {
		if s.sites[id].waits.noted = false; w.changes[id] != (sched.Change{}) {
			changed = append(changed, id)
		}
	}
	w.queues.Step(s.quanta(s.time), w.changes, changed, s.epoch)
	for _, id := range changed {
		w.changes[id] = sched.Change{}
	}
	w.changed = changed[:0]
}
