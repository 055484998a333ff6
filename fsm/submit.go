package fsm

import (
	"slices"
	"sort"
)

// submit executes a Submit: each job is accepted or refused by itself.
func (s *State) submit(x *site, c *Submit) Result {
	if c.Settled > x.settled {
		x.settled = c.Settled
		x.retired = x.retired.from(c.Settled)
	}
	var codes []Code
	for i := range c.Jobs {
		code := s.accept(x, &c.Jobs[i])
		if code != OK && codes == nil {
			codes = make([]Code, len(c.Jobs))
		}
		if codes != nil {
			codes[i] = code
		}
	}
	return Result{Jobs: codes}
}

// accept enters one job, or says why not.
func (s *State) accept(x *site, j *JobSpec) Code {
	switch {
	case x.nums[j.Num] != 0:
		return JobExists
	case x.hasRetired(j.Num):
		return JobRetired
	}
	if code := s.refusal(x, j); code != OK {
		return code
	}
	s.enter(x, j)
	return OK
}

// hasRetired reports whether a number is not taken any more: it was settled, or its
// job has left.
func (x *site) hasRetired(num uint64) bool { return num < x.settled || x.retired.has(num) }

// refusal is why a job cannot be taken, whatever its number; OK if it can.
func (s *State) refusal(x *site, j *JobSpec) Code {
	switch {
	case s.jobs.n >= s.bounds.jobs || s.waiting+uint64(j.Count) > s.bounds.waiting:
		return TooManyJobs
	case len(x.open) >= s.bounds.shapes:
		if c := s.findClass(j.shape()); c == nil || x.open[c] == 0 {
			return TooManyShapes
		}
	}
	return OK
}

// enter adds an accepted job to the state and the queue.
func (s *State) enter(x *site, spec *JobSpec) {
	seq := s.nextSeq
	s.nextSeq++
	j := s.jobs.put(seq, s.epoch)
	*j = job{
		num: spec.Num, entry: s.index, timeoutMs: spec.TimeoutMs, createdMs: spec.CreatedMs,
		queuedMs: s.time, startedMs: -1, endedMs: -1,
		class: s.holdClass(spec.shape()), payload: s.holdPayload(spec.Payload),
		owner: x.id, priority: spec.Priority, count: spec.Count, maxAttempts: spec.MaxAttempts, onLoss: spec.OnLoss,
	}
	j.class.opened(x)
	x.nums[spec.Num] = seq
	x.maxNum = max(x.maxNum, spec.Num)
	s.tellJob(EventJobSubmitted, j)
	s.enqueue(seq, j, j.count)
	s.noteSubmitted(x, j)
}

// retire enters a job that just ended into the order in which jobs leave.
func (s *State) retire(seq uint64, j *job) {
	s.unhold(seq)
	j.class.closed(s.sites[j.owner])
	at := sort.Search(len(s.ended), func(i int) bool {
		o := s.jobs.get(s.ended[i])
		return o.endedMs > j.endedMs || o.endedMs == j.endedMs && s.ended[i] > seq
	})
	s.ended = slices.Insert(s.ended, at, seq)
	s.trimmed = min(s.trimmed, at)
}

// retain lets ended jobs leave, oldest first: by age and by number. Their
// numbers stay refused.
func (s *State) retain() {
	left := s.bounds.retire
	gone := map[*site][]uint64{} // numbers, by owner
	for len(s.ended) > 0 && left > 0 {
		if int64(len(s.ended)) <= s.params.RetainJobs && s.jobs.get(s.ended[0]).endedMs > s.time-s.params.RetainMs {
			break
		}
		if x, num := s.leave(s.ended[0]); num >= x.settled {
			gone[x] = append(gone[x], num)
		}
		s.ended = s.ended[1:]
		s.trimmed = max(0, s.trimmed-1)
		left--
	}
	for x, nums := range gone { // each by itself: the order is all one
		x.retired = x.retired.with(nums)
	}
	s.trim(s.bounds.records)
}

// keepRecord keeps an ended task's details. If there are as many already as may be,
// those of the oldest ended jobs go; if all are of open jobs, this one is not kept.
func (s *State) keepRecord(j *job, t *taskSet, r record) {
	if j.count > s.bounds.detail {
		return
	}
	if s.trim(s.bounds.records - 1); s.records >= s.bounds.records {
		return
	}
	s.records++
	t.addRecord(r)
}

// trim drops the task records of the oldest ended jobs beyond a number.
func (s *State) trim(most int) {
	for s.records > most && s.trimmed < len(s.ended) {
		t := s.mutJob(s.ended[s.trimmed]).set(s.epoch)
		s.records -= len(t.records)
		t.records = nil
		s.trimmed++
	}
}

// leave removes an ended job and returns whose it was, and its number.
func (s *State) leave(seq uint64) (x *site, num uint64) {
	j := s.jobs.get(seq)
	x, num = s.sites[j.owner], j.num
	delete(x.nums, num)
	s.records -= len(j.tasks.records)
	s.releaseClass(j.class)
	s.releasePayload(j.payload)
	s.jobs.drop(seq, s.epoch)
	return x, num
}
