package executor_test

import (
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

func TestRunsTakes(t *testing.T) {
	command, boxed := executor.Task{Command: []string{"true"}}, executor.Task{Command: []string{"true"}, Image: "alpine"}
	for _, c := range []struct {
		runs            executor.Runs
		commands, boxes bool
	}{
		{executor.RunsCommands, true, false},
		{executor.RunsImages, false, true},
		{executor.RunsBoth, true, true},
	} {
		if c.runs.Takes(command) != c.commands || c.runs.Takes(boxed) != c.boxes {
			t.Errorf("%d: takes a command %v, an image %v", c.runs, c.runs.Takes(command), c.runs.Takes(boxed))
		}
	}
}
