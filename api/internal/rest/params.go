package rest

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// QueryUint reads an unsigned parameter; absent means def.
func QueryUint(r *http.Request, name string, def, lo, hi uint64) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" && !r.URL.Query().Has(name) {
		return def, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < lo || n > hi {
		return 0, problem.BadQuery(name, text, "must be a whole number from "+strconv.FormatUint(lo, 10)+" to "+strconv.FormatUint(hi, 10))
	}
	return n, nil
}

// QueryBool reads true or false; absent means false.
func QueryBool(r *http.Request, name string) (bool, error) {
	switch text := r.URL.Query().Get(name); text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "":
		if !r.URL.Query().Has(name) {
			return false, nil
		}
		fallthrough
	default:
		return false, problem.BadQuery(name, text, "must be true or false")
	}
}

// Labels reads KEY=VALUE pairs.
func Labels(pairs []string) (map[string]string, error) {
	var labels map[string]string
	for _, label := range pairs {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return nil, problem.BadQuery("label", label, "must be KEY=VALUE")
		}
		if labels == nil {
			labels = make(map[string]string)
		}
		labels[key] = value
	}
	return labels, nil
}

// TaskStates reads names of task states; an empty one is as if it were not there.
func TaskStates(names []string) (states fsm.TaskStates, err error) {
	for _, name := range names {
		if name == "" {
			continue
		}
		state, known := fsm.ParseTaskState(name)
		if !known {
			return 0, problem.BadQuery("state", name, "must be one of "+fsm.TaskStateNames())
		}
		states = states.With(state)
	}
	return states, nil
}

// QueryIndices reads the tasks that a request names; absent or empty is the empty set.
func QueryIndices(r *http.Request) (jobspec.Indices, error) {
	const name = "tasks"
	text := r.URL.Query().Get(name)
	if text == "" {
		return jobspec.Indices{}, nil
	}
	x, err := jobspec.ParseIndices(text)
	if err != nil {
		return x, problem.BadQuery(name, text, err.Error())
	}
	return x, nil
}

// QueryCursor reads where a list of tasks goes on: 0 = at its beginning.
func QueryCursor(r *http.Request) (uint32, error) {
	if r.URL.Query().Get("cursor") == "" { // as a list's last page gives it
		return 0, nil
	}
	from, err := QueryUint(r, "cursor", 0, 0, command.MaxCount)
	return uint32(from), err
}
