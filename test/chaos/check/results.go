package check

import (
	"fmt"

	"github.com/cloudshare/cloudshare/test/chaos/mark/given"
)

// Result is a file that a task has left, as its owner gives it out.
type Result struct {
	Task    int
	Path    string
	Content string
}

// Results judges what a job's owner has of its tasks: each that succeeded has left its file, and it is the one of the
// attempt that counts. Of a task that an honest site did not run nothing is asked.
func (h Honesty) Results(o Ordered, shown Shown, results []Result) (out []Violation) {
	if !o.Files {
		return nil
	}
	left := map[int][]Result{}
	for _, r := range results {
		left[r.Task] = append(left[r.Task], r)
	}
	for _, t := range shown.Tasks {
		if t.State != "succeeded" || !h.Is(t.Site) {
			continue
		}
		want := Result{t.Index, given.OutputPath, given.Output(fmt.Sprint(t.Attempt), fmt.Sprint(t.Token))}
		if got := left[t.Index]; len(got) != 1 || got[0] != want {
			out = append(out, broken(Delivered, "%s/%d (%s) has succeeded as attempt %d token %d at %s, and its owner has %+v",
				shown.ID, t.Index, o.Name, t.Attempt, t.Token, t.Site, got))
		}
	}
	return out
}
