package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// taskPage is some of a job's tasks, by index.
type taskPage struct {
	Rows    []taskRow
	States  []stateLink // of all tasks, and of those in each state that some are in
	First   string      // link to the first ones, "" = they are shown
	Next    string      // link to more, "" = none
	Partial bool        // the search stopped at its bound
	// Preparing: of one it is said what is done before it starts. Nothing tells that this goes on.
	Preparing bool
	states    []string // that are selected, empty = all
	from      uint32
}

// stateLink leads to the tasks in one state.
type stateLink struct {
	Name, URL string
	Tasks     uint32
	Current   bool
}

type taskRow struct {
	node.Task
	Used string        // what its attempt has used, "" = nothing is known
	Ran  time.Duration // −1 = it did not start
	End  string        // exit code or signal, in words
	Log  string        // link, "" before the first attempt
	// Earlier are links to the outputs of earlier attempts, the first ones first.
	Earlier []logLink
}

const (
	// pageTasks is how many tasks a page shows.
	pageTasks = 50
	// maxEarlier is how many earlier attempts of a task are linked.
	maxEarlier = 5
)

// begins reports whether the page is the first one of all tasks.
func (t *taskPage) begins() bool { return t.from == 0 && len(t.states) == 0 }

// tasks reads the page of tasks that a request asks for.
func (p *Pages) tasks(r *http.Request, job *node.Job) (t taskPage, found []node.Task, err error) {
	t.from = parameter(r, "from", command.MaxCount-1)
	q := node.TaskQuery{From: t.from}
	for _, name := range r.URL.Query()["state"] {
		if state, known := fsm.ParseTaskState(name); known && !slices.Contains(t.states, name) {
			q.States = q.States.With(state)
			t.states = append(t.states, name)
		}
	}
	found, next, err := p.findTasks(r.Context(), job.ID, q, pageTasks)
	if err != nil {
		return t, nil, err
	}
	for _, task := range found {
		t.Rows = append(t.Rows, taskOf(job, task, p.cfg.Now()))
		t.Preparing = t.Preparing || task.State == fsm.Assigned.String() && task.Reason != ""
	}
	t.link(job, next)
	t.Partial = next != 0 && len(found) < pageTasks
	return t, found, nil
}

// findTasks goes on until it has as many tasks as wanted, none are left, or it
// has looked long enough.
func (p *Pages) findTasks(
	ctx context.Context, id command.JobID, q node.TaskQuery, most int,
) (all []node.Task, next uint32, err error) {
	until := time.Now().Add(searchTime)
	for range maxLooks {
		q.Limit = most - len(all)
		found, next, err := p.cfg.Source.FindTasks(ctx, id, q)
		if err != nil {
			return nil, 0, err
		}
		all, q.From = append(all, found...), next
		if next == 0 || len(all) >= most || time.Now().After(until) {
			break
		}
	}
	return all, q.From, nil
}

// link leads to other tasks of the job.
func (t *taskPage) link(job *node.Job, next uint32) {
	if t.from > 0 {
		t.First = tasksURL(job.ID, 0, t.states...)
	}
	if next > 0 {
		t.Next = tasksURL(job.ID, next, t.states...)
	}
	t.States = []stateLink{{"all", tasksURL(job.ID, 0), job.Spec.Count, len(t.states) == 0}}
	for _, state := range taskStates {
		current := len(t.states) == 1 && t.states[0] == state
		if n := job.Counts[state]; n > 0 || current {
			t.States = append(t.States, stateLink{state, tasksURL(job.ID, 0, state), n, current})
		}
	}
}

// tasksURL returns a job's page with the tasks in some states, from an index on.
func tasksURL(id command.JobID, from uint32, states ...string) string {
	q := url.Values{}
	if from > 0 {
		q.Set("from", strconv.FormatUint(uint64(from), 10))
	}
	for _, s := range states {
		q.Add("state", s)
	}
	link := "/jobs/" + id.String()
	if len(q) > 0 {
		link += "?" + q.Encode()
	}
	return link + "#tasks"
}

func taskOf(job *node.Job, t node.Task, now time.Time) taskRow {
	row := taskRow{Task: t, Ran: ran(t.StartedAt, t.EndedAt, now), Used: usedWords(job, &t)}
	switch {
	case t.Signal != nil:
		row.End = "signal " + strconv.Itoa(*t.Signal)
	case t.ExitCode != nil:
		row.End = "exit " + strconv.Itoa(*t.ExitCode)
	}
	base := "/jobs/" + job.ID.String()
	if t.Attempt > 0 || t.Unrecorded && row.End != "" {
		row.Log = logURL(base, t.Index, 0, "stdout") + "#log"
	}
	for n := t.Attempt - min(t.Attempt, maxEarlier+1) + 1; n < t.Attempt; n++ {
		row.Earlier = append(row.Earlier, logLink{
			Name: strconv.FormatUint(uint64(n), 10),
			URL:  logURL(base, t.Index, n, "stdout") + "#log",
		})
	}
	return row
}
