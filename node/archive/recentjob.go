package archive

import "github.com/cloudshare/cloudshare/fsm/command"

// EarlierOf returns copies of a job's attempts that ended, of the tasks [from,
// to), the latest end first, at most limit of them.
func (r *Recent) EarlierOf(job command.JobID, from, to uint32, limit int) []Attempt {
	r.sortEnded()
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Attempt
	for a := range r.ended.newest {
		if len(out) >= limit {
			break
		}
		if a.Job.Num == job.Num && a.Job.Site == job.Site && a.Number > 0 && a.Task >= from && a.Task < to {
			out = append(out, *a)
		}
	}
	return out
}
