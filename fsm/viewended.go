package fsm

import (
	"iter"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// EndedRun is tasks [From, To) of a job that have ended in the same state.
type EndedRun struct {
	From, To uint32
	State    TaskState
}

// EndedRuns yields the tasks of a job that have ended, by position; none if the job is unknown.
func (s *views) EndedRuns(id command.JobID) iter.Seq[EndedRun] {
	return func(yield func(EndedRun) bool) {
		seq := s.findJob(id)
		if seq == 0 {
			return
		}
		j := s.jobs.Get(seq)
		if j.tasks == nil {
			return
		}
		for at := uint32(0); at < j.count; {
			r, _ := j.tasks.findRun(at)
			if r == nil {
				return
			}
			from := max(at, r.from)
			if at = r.to; !yield(EndedRun{from, r.to, r.state}) {
				return
			}
		}
	}
}
