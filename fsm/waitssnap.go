package fsm

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// frozenWaits is the part of a snapshot that is written while a policy of projected waits is in force.
type frozenWaits struct {
	since  int64
	queues *sched.Coalitions
	queued int64
	next   taskKey
	limit  uint64
}

func (s *ranking) freezeWaits() *frozenWaits {
	if s.waits == nil {
		return nil
	}
	return &frozenWaits{s.waits.since, s.waits.queues.Copy(), s.waits.queued, s.waits.next, s.waits.limit}
}

// encodeWaits writes the sites' parts, the estimate of each job that has not ended, the length of each live
// attempt, and the queues.
func (f *Frozen) encodeWaits(w *snapWriter) {
	if f.waits == nil {
		return
	}
	w.int(f.waits.since)
	w.uint(f.waits.limit)
	if f.waits.limit > 0 {
		w.uint(f.waits.next.seq, uint64(f.waits.next.task))
	}
	begun := waits{next: f.waits.next, limit: f.waits.limit}
	for i := range f.sites {
		x := &f.sites[i]
		w.int(x.waits.from, x.waits.ran, x.waits.ranSum)
		w.int128(x.account.Projection.Started)
	}
	for seq, j := range f.jobs.All() {
		if !j.over() && begun.hasJob(seq) {
			w.int(j.booked)
		}
	}
	for _, a := range f.liveInOrder() {
		if begun.has(a.seq, a.task) {
			w.int(a.length)
		}
	}
	w.flush()
	for q := range f.waits.queues.All {
		w.queue(q)
		w.flush()
	}
	if f.phase == cut {
		w.int(f.waits.queued)
		w.flush()
	}
}

func (w *snapWriter) int128(v sched.Int128) {
	w.int(v.Hi)
	w.uint(v.Lo)
}

func (w *snapWriter) queue(q *sched.Queue) {
	v := q.State()
	w.int(v.Clock, v.Units, v.Length)
	w.int128(v.Work)
	w.int128(v.Settled)
	w.int(v.Lent)
	for _, list := range [...][]sched.Slot{v.Free, v.Away} {
		w.uint(uint64(len(list)))
		for _, s := range list {
			w.int(s.At, s.Cores)
		}
	}
}

// waits reads what encodeWaits wrote, after everything else, and counts what waits.
func (r *snapReader) waits(s *State) {
	if r.err != nil || s.founded == 0 || !sched.IsProjected(s.params.Policy) {
		return
	}
	now := s.quanta(s.time)
	s.waits = &waits{
		due: dueHeap(), since: r.within(0, now, "begin of the policy"), changes: make([]sched.Change, len(s.sites)),
	}
	if s.waits.limit = r.upTo(s.nextSeq, "begin of the policy"); s.waits.limit > 0 {
		s.waits.next = taskKey{r.upTo(s.waits.limit, "job"), uint32(r.upTo(command.MaxCount+1, "task"))}
		r.check(s.phase != matched, "a policy begins beside no match")
	}
	for _, x := range s.sites {
		x.waits = waitSite{
			from: r.within(s.waits.since, now, "begin of waiting"), ran: r.within(0, s.bounds.ranTasks-1, "runs"),
			cores: coresOf(x),
		}
		x.waits.ranSum = r.within(0, s.bounds.ranTasks*sched.MaxNow, "runs' lengths")
		x.account.Projection.Started = r.int128()
		r.check(x.account.Projection.Started.Sign() >= 0, "a site waited less than nothing")
		s.waits.all.Started = s.waits.all.Started.Add(x.account.Projection.Started)
	}
	for seq, j := range s.jobs.All() {
		if r.err != nil {
			return
		}
		if !j.over() && s.waits.hasJob(seq) {
			j = s.mutJob(seq)
			j.booked = r.within(1, sched.MaxNow, "estimate")
			s.countWaiting(j)
		}
	}
	for seq := range s.jobs.All() {
		for _, slot := range s.liveOf(seq) {
			if r.err == nil && s.waits.has(seq, s.attempts.Get(slot).task) {
				s.expect(slot, r.within(1, 2*sched.MaxNow, "length"))
			}
		}
	}
	var err error
	policy := sched.Effective(s.params.Policy, len(s.sites))
	s.waits.queues, err = sched.RestoreCoalitions(policy, len(s.sites), leastCores, now, s.epoch, r.queue)
	if err != nil {
		r.fail("%v", err)
	}
	if s.phase == cut {
		s.waits.queued = r.within(0, sched.MaxUnits, "units at a match")
	}
	s.prolonging = s.waits.due.Len() > 0 && s.waits.due.First().at < now
}

func (r *snapReader) int128() sched.Int128 { return sched.Int128{Hi: r.int(), Lo: r.uint()} }

func (r *snapReader) queue() (*sched.Queue, error) {
	v := sched.QueueState{
		Clock: r.int(), Units: r.int(), Length: r.int(),
		Work: r.int128(), Settled: r.int128(), Least: leastCores, Lent: r.int(),
	}
	for _, list := range [...]*[]sched.Slot{&v.Free, &v.Away} {
		for range r.uint() {
			if r.err != nil {
				break
			}
			*list = append(*list, sched.Slot{At: r.int(), Cores: r.int()})
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	q, err := sched.RestoreQueue(v)
	if err != nil {
		return nil, fmt.Errorf("virtual queue: %w", err)
	}
	return q, nil
}
