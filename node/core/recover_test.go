package core

import (
	"slices"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/record"
)

// A home job whose last tasks turned out to have stopped, when the broker was
// started again, was never told to have ended, and its broker remembered one
// more ended job for each until its next start.
func TestRestartRetiresWhatHasStopped(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	var writes []record.Write
	put := func(num uint64, tasks ...fsm.TaskState) {
		writes = append(writes, record.PutRecord(record.BucketHome, record.Number(num), command.JobSpec{Num: num, Count: uint32(len(tasks))}))
		for i, state := range tasks {
			writes = append(writes, record.PutRecord(record.BucketTasks, record.TaskKey(num, uint32(i)), homeTask{State: state, Attempt: 1}))
		}
	}
	for num := range uint64(maxHomeEnded) {
		put(num+1, fsm.TaskSucceeded)
	}
	const first, second, third = maxHomeEnded + 1, maxHomeEnded + 2, maxHomeEnded + 3
	put(first, fsm.Stopping, fsm.Stopping)
	put(second, fsm.Stopping, fsm.Queued) // goes on
	put(third, fsm.TaskFailed, fsm.Stopping)
	if err := a.journal.Commit(writes); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start finds what the first one wrote
		a.reopen()
		h := &a.core.home
		if n := len(h.ended); n != maxHomeEnded || h.ended[0] != 3 || !slices.Equal(h.ended[n-2:], []uint64{first, third}) {
			t.Errorf("remembers %d ended jobs, %d to %v; want %d, 3 to %d and %d", n, h.ended[0], h.ended[n-2:], maxHomeEnded, first, third)
		}
		if len(h.order) != len(h.jobs) || h.order[0] != 3 || !slices.IsSorted(h.order) {
			t.Errorf("%d jobs, %d listed from %d", len(h.jobs), len(h.order), h.order[0])
		}
		if want := []homeWaiting{{second, 1}}; !slices.Equal(h.waiting, want) {
			t.Errorf("%v waits, want %v", h.waiting, want)
		}
	}
}

// Whoever follows the events hears that such a job has ended, once.
func TestRestartTellsThatAStoppedJobEnded(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	writes := []record.Write{record.PutRecord(record.BucketHome, record.Number(1), command.JobSpec{Num: 1, Count: 2})}
	for i := range uint32(2) {
		writes = append(writes, record.PutRecord(record.BucketTasks, record.TaskKey(1, i), homeTask{State: fsm.Stopping, Attempt: 1}))
	}
	if err := a.journal.Commit(writes); err != nil {
		t.Fatal(err)
	}
	ends := 0
	for range 2 {
		a.reopen()
		for _, e := range a.core.told {
			if e.Kind == fsm.EventJobEnded && e.End == fsm.EndingOf(fsm.TaskCancelled) {
				ends++
			}
		}
	}
	if ends != 1 {
		t.Errorf("the end was told %d times, want once", ends)
	}
}

// An adopted task shows when it began: its handler knows, though nobody was told.
func TestAdoptedTaskHasItsStart(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.submit(sleepJob, "")
	a.submit(sleepJob, "")
	r.settle() // the second one runs at b, which has told nobody yet
	began := r.now
	r.now = r.now.Add(time.Minute)
	a.boot()
	b.boot()
	j, _ := a.core.ownJob(1)
	tasks, _, _ := a.core.FindOwnTasks(1, node.TaskQuery{Limit: 1})
	if j.State != "running" || !j.StartedAt.Equal(began) || tasks[0].State != "running" || !tasks[0].StartedAt.Equal(began) {
		t.Errorf("at home: %s since %s, its task %s since %s; want %s", j.State, j.StartedAt, tasks[0].State, tasks[0].StartedAt, began)
	}
	b.ticks(1)
	r.settle()
	if v := r.job("a.2"); v.State != fsm.Running || v.Counts[fsm.Running] != 1 {
		t.Errorf("at b: %s %v", v.State, v.Counts)
	}
}
