package reports

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/attempts"
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
		a := &attempts.Attempt{Ended: &tt.result}
		a.AssignedMs = begun.UnixMilli() - 3
		if end, _ := EndOf(command.AttemptRef{}, a); end.Ran != tt.ran || end.RunMs != 0 {
			t.Errorf("%+v is reported as %+v, want Ran %v", tt.result, end, tt.ran)
		}
	}
}
