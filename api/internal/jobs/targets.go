package jobs

import (
	"net/http"
	"strconv"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// maxTargets is how many jobs one request may name.
const maxTargets = 1000

// target is a job that a request names, or some of its tasks.
type target struct {
	node.CancelTarget
	text string // as it was named
}

// targets reads the jobs that a request names: each once, at most maxTargets.
func targets(r *http.Request, withTasks bool) ([]target, error) {
	var out []target
	seen := map[string]bool{}
	for _, text := range r.URL.Query()["job"] {
		if seen[text] {
			continue
		}
		seen[text] = true
		t, err := parseTarget(text, withTasks)
		if err != nil {
			return nil, err
		}
		if out = append(out, t); len(out) > maxTargets {
			return nil, problem.BadQuery("job", "", "names more than "+strconv.Itoa(maxTargets)+" jobs; ask in parts")
		}
	}
	return out, nil
}

// parseTarget reads SITE.NUMBER, or SITE.NUMBER/TASKS.
func parseTarget(text string, withTasks bool) (t target, err error) {
	t.text = text
	name, tasks, some := cut(text)
	if t.Job, err = fsm.ParseJobID(name); err != nil || some && !withTasks {
		return t, problem.BadQuery("job", text, "must be a job's id, such as site-1.42")
	}
	if some {
		if t.Tasks, err = jobspec.ParseIndices(tasks); err != nil {
			return t, problem.BadQuery("job", text, "after the job's id "+err.Error())
		}
	}
	return t, nil
}
