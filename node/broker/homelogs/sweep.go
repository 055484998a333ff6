package homelogs

import (
	"time"

	"github.com/cloudshare/cloudshare/node/coord/asklogs"
)

// sweep walks through what the state says has ended, for one site: what that has run, and what the state does not say
// who has. It remembers its place, so a site that is away costs nothing.
type sweep struct {
	site   string
	source Source
	// begun: there is a place to go on from.
	begun  bool
	jobs   []Job // the first is the one of which tasks come
	before uint64
	from   uint32
}

// begin starts over.
func (s *sweep) begin() { *s = sweep{site: s.site, source: s.source, begun: true} }

// next returns some of what may be missing, none at times; more is false at the end.
func (s *sweep) next(since time.Time) (batch []want, more bool) {
	if !s.begun {
		return nil, false
	}
	if len(s.jobs) == 0 {
		s.jobs, s.before = s.source.Jobs(s.before)
		s.begun = s.before > 0 || len(s.jobs) > 0
		return nil, s.begun
	}
	job := &s.jobs[0]
	old := !job.EndedAt.IsZero() && job.EndedAt.Before(since)
	if !old && job.Allows(s.site) {
		batch = s.tasks(job, since)
	}
	if s.from == 0 {
		s.jobs = s.jobs[1:]
		s.begun = s.before > 0 || len(s.jobs) > 0
	}
	return batch, s.begun
}

// tasks returns those of some tasks of a job.
func (s *sweep) tasks(job *Job, since time.Time) (batch []want) {
	var tasks []Task
	tasks, s.from = s.source.Ended(job.ID, s.from)
	for _, t := range tasks {
		if t.Site != "" && t.Site != s.site || !t.EndedAt.IsZero() && t.EndedAt.Before(since) {
			continue
		}
		w := want{Ref: asklogs.Ref{Num: job.ID.Num, Task: t.Position}, ended: t.EndedAt}
		if t.Site != "" {
			w.Attempt, w.token = t.Attempt, t.Token
		}
		batch = append(batch, w)
	}
	return batch
}
