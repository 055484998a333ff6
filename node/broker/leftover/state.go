package leftover

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/replica"
)

// StateOf returns the source that the copy of the state is.
func StateOf(site string, r *replica.Replica) Source { return state{site, r} }

type state struct {
	site    string
	replica *replica.Replica
}

// Jobs implements Source. The state says of tasks of large jobs neither where they ran nor what they left.
func (x state) Jobs(before uint64) (jobs []command.JobID, next uint64) {
	next = x.replica.LookJobs(x.site, before, func(v *fsm.JobView) {
		if v.Spec.Delivers && v.Spec.Count <= fsm.DetailTasks {
			jobs = append(jobs, v.ID)
		}
	})
	return jobs, next
}

// unsuccessful are the states of tasks that have ended and may have left something.
var unsuccessful = fsm.TaskStates(0).With(fsm.TaskFailed).With(fsm.TaskCancelled)

// Left implements Source.
func (x state) Left(id command.JobID, from uint32) (list []fsm.Delivery, next uint32) {
	next = x.replica.LookTasks(id, unsuccessful, from, func(_ *fsm.JobView, v *fsm.TaskView) {
		if v.Site == "" || v.Site == x.site || v.Attempt == 0 || v.Output.IsZero() {
			return
		}
		list = append(list, fsm.Delivery{
			AttemptRef: command.AttemptRef{Job: id, Task: v.Index, Attempt: v.Attempt, Token: v.Token},
			Site:       v.Site, Output: v.Output, SinceMs: v.EndedMs,
		})
	})
	return list, next
}

// Now implements Source.
func (x state) Now() int64 { return x.replica.Time() }

// Where implements Source.
func (x state) Where(site string) (addr string, entry uint64) {
	return x.replica.PeerAddress(site), x.replica.Index()
}
