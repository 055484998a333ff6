package machines

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

func TestKindsAreNumberedAlike(t *testing.T) {
	for kind, want := range map[executor.Runs]fsm.Runs{
		executor.RunsCommands: fsm.RunsCommands, executor.RunsImages: fsm.RunsImages, executor.RunsBoth: fsm.RunsBoth,
	} {
		if got := runsOf(executor.Machine{Runs: kind}); got != want {
			t.Errorf("%d is %s to the order, want %s", kind, got, want)
		}
	}
}
