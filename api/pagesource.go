package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/outputs"
	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/results"
	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// pageSource gives the pages the broker's feed in their own terms, and what another broker knows as data: a page is
// always drawn by the broker that shows it.
type pageSource struct {
	seen
	*outputs.Outputs
	others *peers.Client
	left   *results.Results
}

var _ web.Source = pageSource{}

// Moved implements web.Source.
func (p pageSource) Moved() (entry, home uint64) { return p.Feed().Moved() }

// AwaitMove implements web.Source.
func (p pageSource) AwaitMove(ctx context.Context, entry, home uint64) error {
	return p.Feed().AwaitMove(ctx, entry, home)
}

// Events implements web.Source.
func (p pageSource) Events(ctx context.Context, from node.EventID, f node.EventFilter) web.Events {
	return p.seen.Events(from, p.Filter(ctx, f))
}

// Logs implements web.Source: it looks for earlier attempts at all brokers.
func (p pageSource) Logs(ctx context.Context, q node.LogQuery) (io.ReadCloser, error) {
	return p.OpenAnywhere(ctx, q)
}

// ResultFiles implements web.Files.
func (p pageSource) ResultFiles(ctx context.Context, job *node.Job, most int) ([]web.ResultFile, bool, error) {
	list, more, err := p.left.First(ctx, job, most)
	out := make([]web.ResultFile, 0, len(list))
	for _, f := range list {
		out = append(out, web.ResultFile{Task: f.Task, Path: f.Path, Size: f.Size})
	}
	return out, more, err
}

// Job implements web.Source.
func (p pageSource) Job(ctx context.Context, id command.JobID) (node.Job, error) {
	job, err := p.seen.Job(ctx, id)
	var at *node.ElsewhereError
	if !errors.As(err, &at) {
		return job, err
	}
	got, err := peers.AskSame[wire.Job](ctx, p.others, pageAsks(id, ""), at, nil)
	if err != nil {
		return node.Job{}, err
	}
	return jobOf(id, &got), nil
}

// FindTasks implements web.Source.
func (p pageSource) FindTasks(ctx context.Context, id command.JobID, q node.TaskQuery) ([]node.Task, uint32, error) {
	tasks, next, err := p.seen.FindTasks(ctx, id, q)
	var at *node.ElsewhereError
	if !errors.As(err, &at) {
		return tasks, next, err
	}
	got, err := peers.AskSame[wire.List[wire.Task]](ctx, p.others, pageAsks(id, "/tasks"), at, taskValues(q))
	if err != nil {
		return nil, 0, err
	}
	for i := range got.Items[:min(len(got.Items), q.Limit)] {
		tasks = append(tasks, taskOf(&got.Items[i]))
	}
	more, _ := strconv.ParseUint(got.Next, 10, 32) // "" on the last page
	return tasks, uint32(more), nil
}

// pageAsks is a request of this broker's own, for one of its pages.
func pageAsks(id command.JobID, what string) *http.Request {
	return &http.Request{Method: http.MethodGet, Header: http.Header{}, URL: &url.URL{Path: "/v1/jobs/" + id.String() + what}}
}

// taskValues writes a query for tasks as another broker's API reads it.
func taskValues(q node.TaskQuery) url.Values {
	v := url.Values{"limit": {strconv.Itoa(q.Limit)}}
	if q.From > 0 {
		v.Set("cursor", strconv.FormatUint(uint64(q.From), 10))
	}
	for _, name := range strings.Split(fsm.TaskStateNames(), ", ") {
		if state, known := fsm.ParseTaskState(name); known && q.States != 0 && q.States.Has(state) {
			v.Add("state", name)
		}
	}
	return v
}

// jobOf reads what another broker says of a job.
func jobOf(id command.JobID, j *wire.Job) node.Job {
	out := node.Job{
		ID: id, Spec: specOf(&j.Spec), State: problem.OneLine(j.State), Reason: problem.OneLine(j.Reason),
		Durability: problem.OneLine(j.Durability), Counts: map[string]uint32{},
		SubmittedAt: moment(j.SubmittedAt), StartedAt: moment(j.StartedAt), EndedAt: moment(j.EndedAt),
		Outline: j.Outline, Sealed: j.Sealed,
	}
	for _, name := range strings.Split(fsm.TaskStateNames(), ", ") {
		out.Counts[name] = min(j.Counts[name], command.MaxCount)
	}
	return out
}

// specOf reads a spec; of one that is not told, or does not read, there is the number of tasks and no command.
func specOf(s *wire.Spec) jobspec.Spec {
	data, err := json.Marshal(s)
	if err == nil {
		spec, cause := jobspec.ParseSpec(data)
		if err = cause; err == nil {
			return spec
		}
	}
	spec := jobspec.DefaultSpec()
	spec.Name, spec.Count = problem.OneLine(s.Name), max(1, min(s.Count, command.MaxCount))
	return spec
}

// taskOf reads what another broker says of a task.
func taskOf(t *wire.Task) node.Task {
	out := node.Task{
		Index: t.Index, State: problem.OneLine(t.State), Reason: problem.OneLine(t.Reason),
		Site: problem.OneLine(t.Site), Machine: problem.OneLine(t.Machine), Attempt: t.Attempt,
		Token: t.Token, StartedAt: moment(t.StartedAt), EndedAt: moment(t.EndedAt),
		Run: -1, ExitCode: t.ExitCode, Signal: t.Signal, Position: t.Index,
		Unrecorded: t.Attempt == 0 && t.EndedAt != nil, Measured: measuredOf(t.Usage),
	}
	if t.RunMs != nil && *t.RunMs >= 0 && *t.RunMs < int64(maxRun/time.Millisecond) {
		out.Run = time.Duration(*t.RunMs) * time.Millisecond
	}
	return out
}

// measuredOf reads what another broker says that an attempt has used, within the bounds of what is reported.
func measuredOf(u *wire.AttemptUsage) (m command.Measured) {
	if u == nil {
		return m
	}
	for source := command.MeasuredUnknown; source <= command.LastMeasureSource; source++ {
		if source.String() == u.Source {
			m.Source = source
		}
	}
	within := func(n, most int64) int64 { return min(max(n, 0), most) }
	m.PeakBytes = within(u.PeakBytes, command.MaxPeakBytes)
	m.UserMs, m.SystemMs = within(u.UserMs, command.MaxProcessorMs), within(u.SystemMs, command.MaxProcessorMs)
	m.InBytes, m.OutBytes = within(u.InBytes, command.MaxTransfer), within(u.OutBytes, command.MaxTransfer)
	return m
}

// maxRun is more than any task has run; what is above was made up.
const maxRun = 100 * 365 * 24 * time.Hour

// moment returns the zero time for one that has not come.
func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
