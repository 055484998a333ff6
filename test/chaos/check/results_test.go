package check

import (
	"testing"

	"github.com/cloudshare/cloudshare/test/chaos/mark/given"
)

// TestResultsAreOfTheAttemptThatCounts: each way in which an owner can have something else is found.
func TestResultsAreOfTheAttemptThatCounts(t *testing.T) {
	ordered := Ordered{Files: true, Exit: 7}
	seven, other := 7, 99
	shown := Shown{ID: "a.1", Tasks: []ShownTask{
		{Index: 0, State: "succeeded", Site: "b", Attempt: 2, Token: 20},
		{Index: 1, State: "failed", Site: "b", Attempt: 1, Token: 10, ExitCode: &seven},
		{Index: 2, State: "cancelled", Site: "b", Attempt: 3, Token: 30},
		{Index: 3, State: "failed", Site: "b", Attempt: 1, Token: 40, ExitCode: &seven, Away: "they are lost at b"},
		{Index: 4, State: "failed", Site: "b", Attempt: 1, Token: 50, ExitCode: &seven, Reason: "exit 7; " + unkept + ": full"},
		{Index: 5, State: "failed", Site: "b", Attempt: 1, Token: 60, ExitCode: &other},
	}}
	good, failed := Result{0, given.OutputPath, given.Output("2", "20")}, Result{1, given.OutputPath, given.Output("1", "10")}
	for name, x := range map[string]struct {
		left []Result
		want string
	}{
		"as it should be":              {[]Result{good, failed}, ""},
		"also of one that was stopped": {[]Result{good, failed, {2, given.OutputPath, given.Output("3", "30")}}, ""},
		"nothing":                      {nil, "delivered delivered"},
		"nothing of a failure":         {[]Result{good}, "delivered"},
		"an earlier attempt's":         {[]Result{failed, {0, given.OutputPath, given.Output("1", "10")}}, "delivered"},
		"twice":                        {[]Result{failed, good, good}, "delivered"},
		"at another place":             {[]Result{failed, {0, "other", good.Content}}, "delivered"},
		"another task's":               {[]Result{{1, given.OutputPath, good.Content}}, "delivered delivered"},
		"a failure's, torn":            {[]Result{good, {1, given.OutputPath, "attempt 1"}}, "delivered"},
		"a stopped one's, earlier":     {[]Result{good, failed, {2, given.OutputPath, given.Output("2", "25")}}, "delivered"},
		"other bytes than are missed":  {[]Result{good, failed, {3, given.OutputPath, "anything"}}, "delivered"},
	} {
		if got := rules(Honesty{}.Results(ordered, shown, x.left)); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
	if got := rules(Honesty{}.Results(Ordered{}, shown, nil)); got != "" {
		t.Errorf("of a job without files: %q", got)
	}
}
