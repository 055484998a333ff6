package machines

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/trouble"
)

func TestKindsAreNumberedAlike(t *testing.T) {
	for kind, want := range map[executor.Runs]command.Runs{
		executor.RunsCommands: command.RunsCommands, executor.RunsImages: command.RunsImages,
		executor.RunsBoth: command.RunsBoth,
	} {
		if got := runsOf(executor.Machine{Runs: kind}); got != want {
			t.Errorf("%d is %s to the order, want %s", kind, got, want)
		}
	}
}

// TestWhatRunsCountsAsAhead: with what runs, what waits is as much as the state may assign, however little of it runs.
func TestWhatRunsCountsAsAhead(t *testing.T) {
	cores := func(n int64) command.Resources { return command.Resources{MilliCPU: n * 1000} }
	for _, c := range []struct {
		runs, waits int64
		want        bool
	}{{0, 11, true}, {0, 12, false}, {1, 10, true}, {4, 7, true}, {4, 8, false}} {
		s := NewSet(node.DefaultExposure(), &turn.Clock{}, trouble.NewTroubles())
		s.Update("local", []executor.Machine{{Name: "m", Resources: executor.Resources(cores(4))}})
		s.Take("m", executor.Resources(cores(c.runs)), false)
		if got := s.TakesAhead(&fsm.Assignment{Machine: "m", Need: cores(1)}, 3, cores(c.waits)); got != c.want {
			t.Errorf("beside %d cores that run and %d that wait: %t", c.runs, c.waits, got)
		}
	}
}
