package outputs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/replica"
)

const (
	// maxLogTasks is how many tasks' output one answer has.
	maxLogTasks = 1000
	// maxFollowedTasks is how many tasks of a job one request follows at a time.
	maxFollowedTasks = 64
)

// logResponses documents both forms of output.
func (o *Outputs) logResponses() map[string]*huma.Response {
	out := o.api.Responses(http.StatusOK, "text/plain", &huma.Schema{Type: huma.TypeString}, 400, 403, 404, 410, 503)
	out["200"].Content[wire.TypeNDJSON] = &huma.MediaType{Schema: o.api.Schema(wire.Output{})}
	return out
}

// manyLogs is one request for the output of several tasks.
type manyLogs struct {
	of     *Outputs
	r      *http.Request
	query  node.LogQuery // Task is each one's
	tail   int
	named  bool // the tasks are named: that one has not begun is to be said
	out    outputWriter
	mu     sync.Mutex
	missed map[string]missedSite // guarded by mu; by site
	kept   *survey               // of the tasks that isAnywhere; nil = there are none
}

// missedSite is a site that could not be reached.
type missedSite struct {
	problem *wire.Problem
	at      time.Time
}

// missedFor is how long such a site is not asked again: many tasks may have run there,
// and one that is followed may run for days.
const missedFor = 15 * time.Second

// manyLogs answers with the output of several tasks as NDJSON.
func (o *Outputs) manyLogs(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	m := &manyLogs{of: o, r: r, missed: map[string]missedSite{}}
	q, err := m.parse(param("id"))
	if err == nil {
		err = o.broker.Owned(r.Context(), m.query.Job)
	}
	if err != nil {
		return err
	}
	tasks, next, err := source.FindAll(r.Context(), o.broker, m.query.Job, q, maxLogTasks)
	if err != nil {
		return err
	}
	ctx, cancel := o.stop.Until(r.Context())
	defer cancel()
	m.out.w, m.out.control = w, http.NewResponseController(w)
	w.Header().Set("Content-Type", wire.TypeNDJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	_ = m.out.control.Flush() // a follower knows that it is connected
	if m.query.Follow {
		m.followAll(ctx, tasks)
	} else {
		m.copyAll(ctx, tasks)
	}
	if ctx.Err() != nil || m.out.failed() {
		panic(http.ErrAbortHandler) // it must not look whole
	}
	if next == 0 && q.States == 0 {
		m.sendAbsent(q, tasks)
	}
	if next != 0 {
		m.out.send(&wire.Output{Next: strconv.FormatUint(uint64(next), 10)})
	}
	return nil
}

// parse reads which tasks are asked for, and what of them.
func (m *manyLogs) parse(id string) (q node.TaskQuery, err error) {
	values := m.r.URL.Query()
	for _, one := range []string{"task", "attempt"} {
		if values.Has(one) {
			return q, problem.BadQuery(one, values.Get(one), "is for the output of one task: leave it out, or all, tasks and state")
		}
	}
	if m.query, err = logQuery(m.r, id); err != nil {
		return q, err
	}
	if _, err = rest.QueryBool(m.r, "all"); err != nil {
		return q, err
	}
	if m.tail, err = queryTail(m.r); err != nil {
		return q, err
	}
	if q.From, err = rest.QueryCursor(m.r); err != nil {
		return q, err
	}
	if q.States, err = rest.TaskStates(values["state"]); err != nil {
		return q, err
	}
	q.Only, err = rest.QueryIndices(m.r)
	m.named = q.Only.Len() > 0
	return q, err
}

// sendAbsent reports the first of the indices in the query that no task of the job has.
func (m *manyLogs) sendAbsent(q node.TaskQuery, found []node.Task) {
	for index := range q.Only.All() {
		for len(found) > 0 && found[0].Index < index {
			found = found[1:]
		}
		if index >= q.From && (len(found) == 0 || found[0].Index != index) {
			p := problem.New(http.StatusNotFound, "not-found", "Not found", "job "+m.query.Job.String()+" has no task "+strconv.FormatUint(uint64(index), 10))
			m.out.send(&wire.Output{Task: &index, Problem: &p.Problem})
			return
		}
	}
}

// copyAll sends the output of one task after the other.
func (m *manyLogs) copyAll(ctx context.Context, tasks []node.Task) {
	lost := m.findKept(ctx, tasks)
	for i := range tasks {
		switch t := &tasks[i]; {
		case !isAnywhere(t):
			m.copyTask(ctx, t)
		case lost != nil:
			m.missedTask(ctx, t.Index, lost)
		default:
			m.missedTask(ctx, t.Index, m.copyKept(ctx, m.kept, t, 0))
		}
	}
}

// copyTask sends the output of a task's last attempt.
func (m *manyLogs) copyTask(ctx context.Context, t *node.Task) {
	if t.Attempt == 0 && !m.named && t.ExitCode == nil && t.Signal == nil {
		return // it has not begun
	}
	q := m.query
	q.Task, q.Follow = t.Index, false
	m.missedTask(ctx, t.Index, m.copy(ctx, q))
}

// copy sends one attempt's output.
func (m *manyLogs) copy(ctx context.Context, q node.LogQuery) error {
	return m.copyFrom(ctx, q.Task, q.Attempt, func() (io.ReadCloser, error) { return m.open(ctx, q) })
}

// copyLatest sends the output of a task's last attempt, wherever it was.
func (m *manyLogs) copyLatest(ctx context.Context, q node.LogQuery, t *node.Task) error {
	if !isAnywhere(t) {
		return m.copy(ctx, q)
	}
	v, err := m.of.survey(ctx, q.Job, []uint32{t.Position})
	if err != nil {
		return err
	}
	return m.copyKept(ctx, v, t, 0)
}

// copyFrom sends an output.
func (m *manyLogs) copyFrom(
	ctx context.Context, task, attempt uint32, open func() (io.ReadCloser, error),
) error {
	body, err := open()
	if err != nil {
		return err
	}
	defer body.Close()
	defer context.AfterFunc(ctx, func() { _ = body.Close() })() // wakes a reader that waits for more
	return m.out.copy(task, attempt, body)
}

// atSite has another site's broker open an output. One that cannot be reached is asked again after a while.
func (m *manyLogs) atSite(ctx context.Context, site string, open func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	m.mu.Lock()
	missed := m.missed[site]
	m.mu.Unlock()
	if missed.problem != nil && time.Since(missed.at) < missedFor {
		return nil, &problem.Problem{Problem: *missed.problem}
	}
	body, err := open()
	if err != nil && ctx.Err() == nil {
		if p := problem.Of(err); isAway(p) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.missed == nil {
				m.missed = map[string]missedSite{}
			}
			m.missed[site] = missedSite{&p.Problem, time.Now()}
		}
	}
	return body, err
}

// isNotFound reports whether this broker or another one says that there is no such output.
func isNotFound(err error) bool { return err != nil && problem.Of(err).Status == http.StatusNotFound }

// isAway reports whether a problem is of a site, and not of one output there.
func isAway(p *problem.Problem) bool {
	return p.Status == http.StatusServiceUnavailable && p.Type != wire.ProblemPrefix+problem.OutputUnreadable
}

// open opens a log wherever it is, cut to its last lines.
func (m *manyLogs) open(ctx context.Context, q node.LogQuery) (io.ReadCloser, error) {
	body, _, err := m.of.openLog(ctx, q)
	var at *node.ElsewhereError
	if errors.As(err, &at) {
		return m.openAt(ctx, q, at)
	}
	if err == nil && m.tail > 0 {
		return m.of.cutToTail(ctx, body, q, m.tail)
	}
	return body, err
}

// openAt has another broker open a log.
func (m *manyLogs) openAt(ctx context.Context, q node.LogQuery, at *node.ElsewhereError) (io.ReadCloser, error) {
	return m.atSite(ctx, at.Site, func() (io.ReadCloser, error) {
		res, err := m.of.peers.AskFor(ctx, m.r, at, question(q, m.tail))
		if err != nil {
			return nil, err
		}
		return res.Body, nil
	})
}

// followAll follows the tasks, some at a time and in order, until all have ended.
func (m *manyLogs) followAll(ctx context.Context, tasks []node.Task) {
	queue := make(chan uint32)
	var running sync.WaitGroup
	for i := range min(maxFollowedTasks, len(tasks)) {
		leave := func() {}
		if i > 0 { // the request has a place already
			var err error
			if leave, err = m.of.followers.Enter(ctx); err != nil {
				break
			}
		}
		running.Go(func() {
			defer leave()
			for index := range queue {
				m.followTask(ctx, index)
			}
		})
	}
	for i := range tasks {
		select {
		case queue <- tasks[i].Index:
		case <-ctx.Done():
		}
	}
	close(queue)
	running.Wait()
}

// followTask sends the output of a task as it comes, attempt by attempt.
func (m *manyLogs) followTask(ctx context.Context, index uint32) {
	q := m.query
	q.Task = index
	var only jobspec.Indices
	only.Add(index)
	b := m.of.broker
	sub := b.Events(b.Feed().Now(), node.EventFilter{Job: q.Job}) // before the first look: nothing falls in between
	for printed := uint32(0); ctx.Err() == nil; {
		tasks, _, err := b.FindTasks(ctx, q.Job, node.TaskQuery{Only: only, Limit: 1})
		if err != nil || len(tasks) == 0 {
			m.missedTask(ctx, index, err)
			return
		}
		t := tasks[0]
		if t.Attempt > printed {
			q.Attempt = t.Attempt
			err := m.copyLatest(ctx, q, &t)
			if !isNotFound(err) || !t.StartedAt.IsZero() { // else it has not begun there, or never will
				m.missedTask(ctx, index, err)
				printed = t.Attempt
				continue
			}
		}
		if state, _ := fsm.ParseTaskState(t.State); state.Ended() || m.out.failed() {
			if t.Unrecorded && !m.out.failed() {
				m.followKept(ctx, &t, printed)
			}
			return
		}
		m.awaitMore(ctx, sub)
	}
}

// followPace is the least time between two looks at a task.
const followPace = 100 * time.Millisecond

// awaitMore returns after something has happened to the job.
func (m *manyLogs) awaitMore(ctx context.Context, sub *replica.Subscription) {
	if _, err := sub.Next(ctx); err != nil && !errors.Is(err, node.ErrEventsLost) {
		return
	}
	select {
	case <-time.After(followPace):
	case <-ctx.Done():
	}
}

// missedTask tells why a task's output is not whole.
func (m *manyLogs) missedTask(ctx context.Context, index uint32, err error) {
	if err != nil && ctx.Err() == nil {
		m.out.send(&wire.Output{Task: &index, Problem: &problem.Logged(m.of.log, err).Problem})
	}
}
