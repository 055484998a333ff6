package core

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestAnEndSaysWhetherItRan: a run of less than a millisecond is reported as
// one, and a process that never came to be is not.
func TestAnEndSaysWhetherItRan(t *testing.T) {
	begun := time.UnixMilli(1_000_000)
	for _, tt := range []struct {
		result executor.Result
		ran    bool
	}{
		{executor.Result{Started: begun, Run: 900 * time.Microsecond}, true},
		{executor.Result{Cause: executor.NoStart}, false},
	} {
		id := new(jobMemory).attemptID(command.AttemptRef{Job: command.JobID{Site: "a", Num: 1}, Attempt: 1, Token: 5})
		a := &attempt{ended: &tt.result}
		a.AssignedMs = begun.UnixMilli() - 3
		c := &Core{}
		c.queueEndReport(id, a, &Effects{})
		if len(c.ends) != 1 || c.ends[0].Ran != tt.ran || c.ends[0].RunMs != 0 {
			t.Errorf("%+v is reported as %+v, want Ran %v", tt.result, c.ends, tt.ran)
		}
	}
}
