package core

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// refusedJob is a job on its way from its own site, which refuses it, to another.
type refusedJob struct {
	*rig
	a, b    *rigSite
	spec    string
	results []command.Result // of what is ordered, and not known at a yet
	ordered []command.Command
}

func newRefusedJob(t *testing.T, count int) *refusedJob {
	r := pickyRig(t, 3, 3)
	j := &refusedJob{rig: r, a: r.sites[0], b: r.sites[1], spec: fmt.Sprintf(`{"image":"evil","count":%d}`, count)}
	j.a.hold = true
	return j
}

// steps are the turns of the way, one after the other.
func (j *refusedJob) steps(count int) (steps []func()) {
	steps = append(steps, func() { j.a.submit(j.spec, "key") })
	for i := range count {
		steps = append(steps, func() { j.a.turn(RefusedEvent{j.a.asked[i].ID, errForbidden}) })
	}
	return append(steps, func() {
		j.a.hold = false
		j.ordered, j.a.pending = j.a.pending, nil
		j.results = j.apply(j.ordered...)
		j.b.turn(StateEvent{})
	}, func() {
		j.a.turn(ResultEvent{Cmds: j.ordered, Results: j.results})
	})
}

// end lets everything run to its end.
func (j *refusedJob) end() {
	for range 5 {
		j.settle()
		j.a.ticks(1)
		for _, id := range j.b.stops {
			if _, runs := j.b.running[id]; runs {
				delete(j.b.running, id)
				j.b.turn(EndedEvent{id, executor.Result{Cause: executor.Stopped, Started: j.now}})
			}
		}
		for id := range j.b.running {
			j.b.finish(id, 0)
		}
	}
	j.settle()
}

// states are those of the job at home and in the federation, "" = it is not there.
func (j *refusedJob) states() (home, federation string) {
	if v, ok := j.a.core.own.Job(1); ok {
		home = v.State
	}
	if v, ok := j.state.Job(command.JobID{Site: "a", Num: 1}); ok {
		federation = v.State.String()
	}
	return home, federation
}

// TestRefusedJobSurvivesKills: wherever on its way from home to another site the broker
// is killed, a job is neither lost nor run twice, and its key stands for it. One whose
// handler was perhaps told to start it is no job for others any more: it fails.
func TestRefusedJobSurvivesKills(t *testing.T) {
	for _, count := range []int{1, 3} {
		for kill := range count + 3 {
			j := newRefusedJob(t, count)
			for i, step := range j.steps(count) {
				if step(); i == kill {
					j.a.hold = false
					j.a.boot()
					break
				}
			}
			j.end()
			home, federation := j.states()
			switch ran := len(j.b.history); {
			case home == "failed" && federation == "" && ran == 0 && kill < count:
			case home == "" && federation == "succeeded" && ran == count && kill >= count:
			default:
				t.Errorf("%d tasks, killed after step %d: %q at home, %q in the federation, %d started at b", count, kill, home, federation, ran)
			}
			again := j.a.submit(j.spec, "key")
			if got := j.a.answers[again]; got.Err != nil || got.ID.Num != 1 || !got.Replayed || j.a.core.nextJob != 2 {
				t.Errorf("%d tasks, killed after step %d: the key gives %+v", count, kill, got)
			}
		}
	}
}

// TestRefusedJobIsCancelled wherever on that way it is, and answers once.
func TestRefusedJobIsCancelled(t *testing.T) {
	for _, count := range []int{1, 3} {
		for at := range count + 3 {
			j := newRefusedJob(t, count)
			replies, refused := 0, error(nil)
			for i, step := range j.steps(count) {
				if step(); i == at {
					j.a.turn(CancelEvent{Num: 1, Reply: func(err error) { replies, refused = replies+1, err }})
				}
			}
			j.settle()
			j.end()
			if home, federation := j.states(); replies != 1 || refused != nil || home+federation != "cancelled" {
				t.Errorf("%d tasks, cancelled after step %d: %d replies, %v; %q at home, %q in the federation", count, at, replies, refused, home, federation)
			}
		}
	}
}
