package homelogs

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/replica"
)

// StateOf returns the source that the copy of the state is.
func StateOf(site string, r *replica.Replica) Source { return state{site, r} }

type state struct {
	site    string
	replica *replica.Replica
}

// Sites implements Source.
func (x state) Sites() (names []string) {
	x.replica.View(func(s *fsm.State) {
		for _, v := range s.Sites() {
			if v.ID != x.site && v.State != fsm.Left {
				names = append(names, v.ID)
			}
		}
	})
	return names
}

// Address implements Source.
func (x state) Address(site string) string { return x.replica.PeerAddress(site) }

// Jobs implements Source.
func (x state) Jobs(before uint64) (jobs []Job, next uint64) {
	next = x.replica.LookJobs(x.site, before, func(v *fsm.JobView) {
		spec := command.JobSpec{Only: v.Spec.Only, Not: v.Spec.Not}
		jobs = append(jobs, Job{ID: v.ID, EndedAt: x.replica.WallOf(v.EndedMs, time.Time{}), Allows: spec.Allows})
	})
	return jobs, next
}

// ended are the states of tasks that will not change any more.
var ended = fsm.TaskStates(0).With(fsm.TaskSucceeded).With(fsm.TaskFailed).With(fsm.TaskCancelled).With(fsm.TaskLost)

// Ended implements Source.
func (x state) Ended(id command.JobID, from uint32) (tasks []Task, next uint32) {
	next = x.replica.LookTasks(id, ended, from, func(job *fsm.JobView, v *fsm.TaskView) {
		if v.Attempt == 0 && job.Spec.Count <= fsm.DetailTasks {
			return // it has had none
		}
		tasks = append(tasks, Task{
			Position: v.Index, Site: v.Site, Attempt: v.Attempt, Token: v.Token,
			EndedAt: x.replica.WallOf(v.EndedMs, time.Time{}),
		})
	})
	return tasks, next
}

// Position implements Source. Of a job that the state does not have any more the index is taken for it.
func (x state) Position(id command.JobID, index uint32) (position uint32) {
	position = index
	x.replica.View(func(s *fsm.State) {
		if !s.PayloadBegins(id, jobspec.PayloadIndices) {
			return
		}
		if job, ok := s.Job(id); ok {
			n := jobspec.NumberingOf(job.Spec.Payload, job.Spec.Count)
			position = n.Position(index)
		}
	})
	return position
}
