package replica

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Looks that go through much of the state are short: entries wait for them.
const (
	// JobsAtOnce are the jobs of one look.
	JobsAtOnce = 64
	// TasksAtOnce are the tasks that one look finds.
	TasksAtOnce = 1000
)

// LookJobs shows some of a site's own jobs, and returns the place to go on from, 0 behind the last; it begins at 0.
func (r *Replica) LookJobs(owner string, before uint64, see func(*fsm.JobView)) (next uint64) {
	r.View(func(s *fsm.State) {
		var views []fsm.JobView
		views, next = s.Jobs(fsm.JobFilter{Owner: owner}, before, JobsAtOnce)
		for i := range views {
			see(&views[i])
		}
	})
	return next
}

// LookTasks shows some of a job's tasks in some states, and returns the place to go on from, 0 behind the last; it
// begins at 0. Of a job that the state does not have it shows none.
func (r *Replica) LookTasks(
	id command.JobID, states fsm.TaskStates, from uint32, see func(job *fsm.JobView, task *fsm.TaskView),
) (next uint32) {
	r.View(func(s *fsm.State) {
		job, ok := s.Job(id)
		if !ok {
			return
		}
		scan := fsm.TaskScan{States: states, Limit: TasksAtOnce}
		if next = s.ScanTasks(id, &scan, from, job.Spec.Count); next >= job.Spec.Count {
			next = 0
		}
		for i := range scan.Found {
			see(&job, &scan.Found[i])
		}
	})
	return next
}

// Time returns log time in milliseconds.
func (r *Replica) Time() (ms int64) {
	r.View(func(s *fsm.State) { ms = s.Time() })
	return ms
}
