package check

import (
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/test/chaos/mark/given"
)

// Result is a file that a task has left, as its owner gives it out.
type Result struct {
	Task    int
	Path    string
	Content string
}

// Results judges what a job's owner has of its tasks: of each at most its file, and it is the one of the attempt that
// counts, to the byte. One that succeeded has it; one that failed by itself had left it, and has it, or is said to lack
// it and why. What was cancelled may not have come so far. Of a task that an honest site did not run nothing is asked.
func (h Honesty) Results(o Ordered, shown Shown, results []Result) (out []Violation) {
	if !o.Files {
		return nil
	}
	left := map[int][]Result{}
	for _, r := range results {
		left[r.Task] = append(left[r.Task], r)
	}
	for _, t := range shown.Tasks {
		got := left[t.Index]
		if !h.Is(t.Site) || len(got) == 0 && !mustHave(o, t) {
			continue
		}
		want := Result{t.Index, given.OutputPath, given.Output(fmt.Sprint(t.Attempt), fmt.Sprint(t.Token))}
		if len(got) != 1 || got[0] != want {
			out = append(out, broken(Delivered, "%s/%d (%s) is %s (%s) as attempt %d token %d at %s, and its owner has %+.80v",
				shown.ID, t.Index, o.Name, t.State, t.Reason, t.Attempt, t.Token, t.Site, got))
		}
	}
	return out
}

// mustHave reports whether the owner of a task must have its file.
func mustHave(o Ordered, t ShownTask) bool {
	switch t.State {
	case "succeeded":
		return true
	case "failed":
		ran := t.ExitCode != nil && *t.ExitCode == o.Exit // a task leaves its file before anything else
		return ran && t.Away == "" && !strings.Contains(t.Reason, unkept)
	}
	return false
}

// unkept is in the reason of a failure whose files its site could not keep, for lack of room.
const unkept = "its outputs could not be kept at its site"
