package homejobs

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/attempts"
	"github.com/cloudshare/cloudshare/node/core/machines"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/core/usage"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/trouble"
)

func openJournal(t *testing.T) *record.Journal {
	t.Helper()
	j, err := record.OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// restart returns the book of a broker that starts on a journal, and journals what it does.
func restart(t *testing.T, j *record.Journal) *Book {
	t.Helper()
	now := &turn.Clock{}
	out := turn.NewOutbox("a")
	set := machines.NewSet(node.DefaultExposure(), now, trouble.NewTroubles())
	runs, rows := attempts.NewBook("a", now, &set, nil), usage.NewBook(&out, now)
	b := NewBook(Site{Name: "a", Now: now, Machines: &set, Attempts: &runs, Usage: &rows, Tallies: trouble.NewTallies()})
	if err := b.Recover(j); err != nil {
		t.Fatal(err)
	}
	fx := &turn.Effects{}
	b.Requeue(fx)
	if err := j.Commit(fx.Writes); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// A home job whose last tasks turned out to have stopped, when the broker was
// started again, was never told to have ended, and its broker remembered one
// more ended job for each until its next start.
func TestRestartRetiresWhatHasStopped(t *testing.T) {
	j := openJournal(t)
	var writes []record.Write
	put := func(num uint64, tasks ...fsm.TaskState) {
		writes = append(writes, record.PutRecord(record.BucketHome, record.Number(num),
			command.JobSpec{Num: num, Count: uint32(len(tasks))}))
		for i, state := range tasks {
			writes = append(writes, record.PutRecord(record.BucketTasks, record.TaskKey(num, uint32(i)),
				Task{State: state, Attempt: 1}))
		}
	}
	for num := range uint64(MaxEnded) {
		put(num+1, fsm.TaskSucceeded)
	}
	const first, second, third = MaxEnded + 1, MaxEnded + 2, MaxEnded + 3
	put(first, fsm.Stopping, fsm.Stopping)
	put(second, fsm.Stopping, fsm.Queued) // goes on
	put(third, fsm.TaskFailed, fsm.Stopping)
	if err := j.Commit(writes); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start finds what the first one wrote
		h := restart(t, j)
		if n := len(h.ended); n != MaxEnded || h.ended[0] != 3 || !slices.Equal(h.ended[n-2:], []uint64{first, third}) {
			t.Errorf("remembers %d ended jobs, %d to %v; want %d, 3 to %d and %d", n, h.ended[0], h.ended[n-2:], MaxEnded, first, third)
		}
		if len(h.order) != len(h.jobs) || h.order[0] != 3 || !slices.IsSorted(h.order) {
			t.Errorf("%d jobs, %d listed from %d", len(h.jobs), len(h.order), h.order[0])
		}
		if want := []waitingTask{{second, 1}}; !slices.Equal(h.waiting, want) {
			t.Errorf("%v waits, want %v", h.waiting, want)
		}
	}
}

// Whoever follows the events hears that such a job has ended, once.
func TestRestartTellsThatAStoppedJobEnded(t *testing.T) {
	j := openJournal(t)
	writes := []record.Write{record.PutRecord(record.BucketHome, record.Number(1), command.JobSpec{Num: 1, Count: 2})}
	for i := range uint32(2) {
		writes = append(writes, record.PutRecord(record.BucketTasks, record.TaskKey(1, i),
			Task{State: fsm.Stopping, Attempt: 1}))
	}
	if err := j.Commit(writes); err != nil {
		t.Fatal(err)
	}
	ends := 0
	for range 2 {
		for _, e := range restart(t, j).told {
			if e.Kind == fsm.EventJobEnded && e.End == fsm.EndingOf(fsm.TaskCancelled) {
				ends++
			}
		}
	}
	if ends != 1 {
		t.Errorf("the end was told %d times, want once", ends)
	}
}
