package jobs

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// selectPages bounds the pages of jobs that are looked at for those of a user or with labels.
const selectPages = 100

// registerCancel adds POST /v1/cancel.
func (j *Jobs) registerCancel() {
	j.api.Handle(huma.Operation{
		OperationID: "cancel-many", Method: http.MethodPost, Path: "/v1/cancel", Summary: "Cancel jobs, tasks of jobs, or all jobs of a user or with labels",
		Description: "One item per job named, in order; what becomes of one changes nothing for the others. At most 1000 jobs, and 1000 tasks of each. " +
			"By user and label: the open jobs of the asked broker's site that are the user's, have all the labels and are not being stopped already; more is true if there are others yet: ask again. " +
			"Users may name themselves alone.",
		Parameters: []*huma.Param{
			rest.ListParam("job", "SITE.NUMBER, or some of its tasks, SITE.NUMBER/3,17,40-60; may be repeated"), rest.ListParam("label", "KEY=VALUE, may be repeated"),
			rest.QueryParam("user", huma.TypeString, "of the asked broker's site"),
		},
		Responses: j.api.Responses(http.StatusOK, wire.TypeJSON, j.api.Schema(wire.Cancelled{}), 400, 403, 503),
	}, j.cancelMany)
}

// cancelMany answers 200 with what became of each job.
func (j *Jobs) cancelMany(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	list, more, err := j.asked(r, true, func(job *node.Job) bool { return !isEnding(job) })
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusOK, wire.Cancelled{Items: j.cancelTargets(r, list), More: more})
}

// asked returns the jobs that a request names, or those of its user and labels that pass; more: there are others yet.
func (j *Jobs) asked(r *http.Request, withTasks bool, pass func(*node.Job) bool) (list []target, more bool, err error) {
	if list, err = targets(r, withTasks); err != nil {
		return nil, false, err
	}
	q, err := j.selection(r)
	switch {
	case err != nil:
		return nil, false, err
	case q == nil && len(list) == 0:
		return nil, false, problem.BadQuery("job", "", "is missing: name jobs, a user or a label")
	case q != nil && len(list) > 0:
		return nil, false, problem.BadQuery("job", list[0].text, "given together with user or label: give one of them")
	case q != nil:
		return j.selected(r.Context(), q, pass)
	}
	return list, false, nil
}

// cancelTargets cancels what the asker may; what is another site's is cancelled at its own broker.
func (j *Jobs) cancelTargets(r *http.Request, list []target) []wire.CancelledJob {
	asked := make([]node.CancelTarget, len(list))
	for i := range list {
		asked[i] = list[i].CancelTarget
	}
	items := make([]wire.CancelledJob, len(list))
	for i, err := range j.broker.CancelAll(r.Context(), asked) {
		items[i] = wire.CancelledJob{Job: list[i].text}
		if err != nil {
			items[i].Problem = &problem.Logged(j.log, err).Problem
		} else if job, err := j.broker.Job(r.Context(), asked[i].Job); err == nil { // else cancelled all the same
			items[i].State = job.State
		}
	}
	return items
}

// isEnding reports whether all of a job that has not ended is being ended already: else
// who has a thousand jobs cancelled, and asks for the others, would get these again.
func isEnding(job *node.Job) bool {
	for name, n := range job.Counts {
		if state, _ := fsm.ParseTaskState(name); n > 0 && !state.Ended() && state != fsm.Stopping {
			return false
		}
	}
	return true
}

// selection reads which of this site's jobs are meant by user and labels, nil = none are.
func (j *Jobs) selection(r *http.Request) (*node.JobQuery, error) {
	in := r.URL.Query()
	labels := in["label"]
	if len(labels) == 0 && !in.Has("user") {
		return nil, nil //nolint:nilnil // jobs are named then
	}
	q := &node.JobQuery{Site: j.broker.Site(), User: in.Get("user"), Limit: maxLimit}
	if in.Has("user") {
		if err := j.checkUser(q.User, ""); err != nil {
			return nil, err
		}
		if who := node.AskerOf(r.Context()); !who.Operator && who.User != q.User {
			return nil, fmt.Errorf("jobs of user %s: %w: users name their own, the operator anybody's", q.User, node.ErrNotOwner)
		}
	}
	var err error
	if q.Labels, err = rest.Labels(labels); err != nil {
		return nil, err
	}
	if len(q.Labels) != len(labels) { // one that is left out would select more
		return nil, problem.BadQuery("label", "", "must name each key once")
	}
	return q, nil
}

// selected finds this site's open jobs of a selection that pass; more: not all of them.
func (j *Jobs) selected(
	ctx context.Context, which *node.JobQuery, pass func(*node.Job) bool,
) (list []target, more bool, err error) {
	seen := map[command.JobID]bool{}
	for _, state := range []string{"running", "queued", "withdrawn", "running"} { // what waited first may run by now
		q := *which
		q.State = state
		for range selectPages {
			page, err := j.broker.Jobs(ctx, q)
			if err != nil {
				return nil, false, err
			}
			for i := range page.Items {
				if id := page.Items[i].ID; !seen[id] && pass(&page.Items[i]) {
					seen[id] = true
					list = append(list, target{node.CancelTarget{Job: id}, id.String()})
				}
			}
			if len(list) > maxTargets {
				return list[:maxTargets], true, nil
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
	}
	return list, false, nil
}

// cut takes apart what names a job, or some of its tasks.
func cut(text string) (job, tasks string, some bool) { return strings.Cut(text, "/") }
