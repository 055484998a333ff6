package fsm

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestScanFindsWhatIsRareInAMillion: what ended alike and what never began is skipped at once.
func TestScanFindsWhatIsRareInAMillion(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.submit("a", w.job("a", command.MaxCount))
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: 900_000})
	scan := TaskScan{States: TaskStates(0).With(TaskCancelled).With(TaskFailed), Limit: 10}
	next := w.s.ScanTasks(command.JobID{Site: "a", Num: 1}, &scan, 0, command.MaxCount)
	if next != command.MaxCount || len(scan.Found) != 1 || scan.Found[0].Index != 900_000 || scan.looks > 4 {
		t.Errorf("%d found in %d looks, next %d", len(scan.Found), scan.looks, next)
	}
	scan = TaskScan{States: TaskStates(0).With(Queued), Limit: 3}
	next = w.s.ScanTasks(command.JobID{Site: "a", Num: 1}, &scan, 899_999, 900_003)
	if fmt.Sprint(indices(scan.Found)) != "[899999 900001 900002]" || next != 900_003 {
		t.Errorf("%v, next %d", indices(scan.Found), next)
	}
	if next := w.s.ScanTasks(command.JobID{Site: "a", Num: 9}, &scan, 0, 5); next != 5 {
		t.Errorf("no such job: next %d", next)
	}
}

// TestScanIsBounded: tasks whose states alternate are examined one by one, and only so many at a time.
func TestScanIsBounded(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.submit("a", w.job("a", 3*maxTaskLooks))
	var cmds []command.Command
	for task := int64(0); task < 3*maxTaskLooks; task += 2 {
		cmds = append(cmds, w.cmd("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: task}))
		if len(cmds) == command.Window/2 {
			w.apply(cmds...)
			cmds = nil
		}
	}
	scan := TaskScan{States: TaskStates(0).With(TaskLost), Limit: 10}
	next := w.s.ScanTasks(command.JobID{Site: "a", Num: 1}, &scan, 0, 3*maxTaskLooks)
	if len(scan.Found) != 0 || scan.looks != maxTaskLooks || next == 0 || next >= 3*maxTaskLooks {
		t.Errorf("%d looks, next %d", scan.looks, next)
	}
}

func indices(views []TaskView) (out []uint32) {
	for _, v := range views {
		out = append(out, v.Index)
	}
	return out
}

// checkScan compares ScanTasks with examining every task.
func checkScan(t tb, s *State, id command.JobID) {
	all, _ := s.Tasks(id, 0, command.MaxCount)
	for state := Queued; state <= Held; state++ {
		var want []uint32
		for _, v := range all {
			if v.State == state {
				want = append(want, v.Index)
			}
		}
		scan := TaskScan{States: TaskStates(0).With(state), Limit: command.MaxCount}
		s.ScanTasks(id, &scan, 0, command.MaxCount)
		if got := indices(scan.Found); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("job %s: tasks %s: scan finds %v, a look at all %v", id, state, got, want)
		}
	}
}
