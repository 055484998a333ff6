package core

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// TestHomeTasksSayWhatTheyUsed: what the latest attempt of a home task has used is told with its end, is shown with the
// task after a restart, too, and is told and shown no more once another attempt was begun.
func TestHomeTasksSayWhatTheyUsed(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1)
	a := r.sites[0]
	var told []command.Measured
	hear := func() {
		a.core.SetEmit(func(events []node.Event) {
			for i := range events {
				if m := events[i].Measured; !m.IsZero() {
					told = append(told, m)
				}
			}
		})
	}
	hear()
	shows := func(when string, want command.Measured) {
		t.Helper()
		tasks, _, ok := a.core.Own().FindTasks(1, node.TaskQuery{Limit: 1})
		if !ok || len(tasks) != 1 || tasks[0].Measured != want {
			t.Errorf("%s: %+v, want %+v", when, tasks, want)
		}
	}
	end := func(exit int, u executor.Usage) {
		t.Helper()
		id := a.only()
		delete(a.running, id)
		a.turn(EndedEvent{id, executor.Result{
			ExitCode: exit, Started: r.now.Add(-time.Second), Run: time.Second, Usage: u,
		}})
	}
	a.submit(`{"command":["false"],"retry":{"max_attempts":3}}`, "")
	shows("it runs", command.Measured{})
	end(1, executor.Usage{User: time.Second, TimeFrom: executor.UsageCgroup})
	shows("it runs again", command.Measured{})
	end(1, executor.Usage{})
	shows("nobody knows what its second attempt used", command.Measured{})
	end(0, executor.Usage{PeakMemory: 7 << 20, MemoryFrom: executor.UsageRusage})
	want := command.Measured{PeakBytes: 7 << 20, Source: command.MeasuredRusage}
	shows("it has ended", want)
	a.boot()
	hear()
	a.ticks(10)
	shows("after a restart", want)
	if first := (command.Measured{UserMs: 1000, Source: command.MeasuredCgroup}); len(told) != 2 || told[0] != first ||
		told[1] != want {
		t.Errorf("told %+v", told)
	}
}
