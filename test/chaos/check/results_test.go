package check

import (
	"testing"

	"github.com/cloudshare/cloudshare/test/chaos/mark/given"
)

// TestResultsAreOfTheAttemptThatCounts: each way in which an owner can have something else is found.
func TestResultsAreOfTheAttemptThatCounts(t *testing.T) {
	ordered := Ordered{Files: true}
	shown := Shown{ID: "a.1", Tasks: []ShownTask{
		{Index: 0, State: "succeeded", Site: "b", Attempt: 2, Token: 20},
		{Index: 1, State: "failed", Site: "b", Attempt: 1, Token: 10},
	}}
	good := Result{0, given.OutputPath, given.Output("2", "20")}
	for name, x := range map[string]struct {
		left []Result
		want string
	}{
		"as it should be":         {[]Result{good}, ""},
		"also of one that failed": {[]Result{good, {1, given.OutputPath, "anything"}}, ""},
		"nothing":                 {nil, "delivered"},
		"an earlier attempt's":    {[]Result{{0, given.OutputPath, given.Output("1", "10")}}, "delivered"},
		"twice":                   {[]Result{good, good}, "delivered"},
		"at another place":        {[]Result{{0, "other", good.Content}}, "delivered"},
		"another task's":          {[]Result{{1, given.OutputPath, good.Content}}, "delivered"},
	} {
		if got := rules(Honesty{}.Results(ordered, shown, x.left)); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
	if got := rules(Honesty{}.Results(Ordered{}, shown, nil)); got != "" {
		t.Errorf("of a job without files: %q", got)
	}
}
