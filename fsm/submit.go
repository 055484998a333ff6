package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// submit executes a Submit: each job is accepted or refused on its own.
func (s *State) submit(x *site, c *command.Submit) command.Result {
	if c.Settled > x.settled {
		x.settled = c.Settled
		x.retired = x.retired.From(c.Settled)
	}
	var codes []command.Code
	for i := range c.Jobs {
		code := s.accept(x, &c.Jobs[i])
		if code != command.OK && codes == nil {
			codes = make([]command.Code, len(c.Jobs))
		}
		if codes != nil {
			codes[i] = code
		}
	}
	return command.Result{Jobs: codes}
}

// accept adds one job, or returns why not.
func (s *State) accept(x *site, j *command.JobSpec) command.Code {
	switch used := j.Num <= x.maxNum; { // usually it is greater than all before
	case used && x.nums[j.Num] != 0:
		return command.JobExists
	case j.Num < x.settled || used && x.retired.Has(j.Num):
		return command.JobRetired
	}
	h := j.Shape()
	if code := s.refusal(x, j, &h); code != command.OK {
		return code
	}
	s.enter(x, j, &h)
	return command.OK
}

// hasRetired reports whether a number is no longer accepted: it was settled, or its job has left.
func (x *site) hasRetired(num uint64) bool { return num < x.settled || x.retired.Has(num) }

// enter adds an accepted job to the state and the queue.
func (s *State) enter(x *site, spec *command.JobSpec, h *command.Shape) {
	seq := s.nextSeq
	s.nextSeq++
	s.steps.used += stepEnd
	j := s.jobs.Put(seq, s.epoch)
	*j = job{
		num: spec.Num, entry: s.index, timeoutMs: spec.TimeoutMs, createdMs: spec.CreatedMs,
		queuedMs: s.time, startedMs: -1, endedMs: -1,
		class: s.holdClass(h), payload: s.holdPayload(spec.Payload),
		owner: x.id, order: spec.Order(), count: spec.Count, maxAttempts: spec.MaxAttempts, onLoss: spec.OnLoss,
		delivers: spec.Delivers, gated: spec.Gated,
	}
	if j.gated {
		j.next = j.count
	}
	j.class.opened(x)
	x.openSeqs.Insert(x.openSeqs.End(), seq)
	x.use.tasks += uint64(j.count)
	x.use.bytes += j.bytes()
	x.nums[spec.Num] = seq
	x.maxNum = max(x.maxNum, spec.Num)
	s.tellJob(EventJobSubmitted, j)
	if j.gated {
		x.held += uint64(j.count)
		s.tellHeld(j, 0, j.count)
	} else {
		s.enqueue(seq, j, j.count)
	}
	s.noteSubmitted(x, j)
}

// retire removes a job that just ended from the open ones.
func (s *lifecycle) retire(seq uint64, j *job) {
	s.unhold(seq)
	j.class.closed(s.sites[j.owner])
	dropSeq(&s.sites[j.owner].openSeqs, seq)
	s.keep(seq, j)
}
