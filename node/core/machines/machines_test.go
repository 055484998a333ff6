package machines

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
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
