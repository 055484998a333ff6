package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Spec is the part of a job's specification that the tests use.
type Spec struct {
	Name      string            `json:"name,omitempty"`
	Command   []string          `json:"command"`
	Env       map[string]string `json:"env,omitempty"`
	Count     int               `json:"count,omitempty"`
	Timeout   string            `json:"timeout,omitempty"`
	Resources *Resources        `json:"resources,omitempty"`
	Retry     *Retry            `json:"retry,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Sites     *Where            `json:"sites,omitempty"`
	Selectors []string          `json:"selectors,omitempty"`
	Network   bool              `json:"network,omitempty"`
	Inputs    []Input           `json:"inputs,omitempty"`
	Outputs   *Outputs          `json:"outputs,omitempty"`
	After     []After           `json:"after,omitempty"`
	Parallel  int               `json:"parallel,omitempty"`
	Notify    []Hook            `json:"notify,omitempty"`
}

// Hook is a URL that is told of a job's end.
type Hook struct {
	URL string `json:"url"`
}

// After is a job that another one waits for.
type After struct {
	Job  string `json:"job"`
	When string `json:"when,omitempty"`
}

// Resources of one task.
type Resources struct {
	CPU int `json:"cpu,omitempty"`
}

// Retry says what failures and losses mean.
type Retry struct {
	MaxAttempts int      `json:"max_attempts,omitempty"`
	OnLoss      string   `json:"on_loss,omitempty"`
	Backoff     string   `json:"backoff,omitempty"`
	OnlyOn      []string `json:"only_on,omitempty"`
	NotOn       []string `json:"not_on,omitempty"`
}

// Where restricts the sites that may run a job.
type Where struct {
	Only []string `json:"only,omitempty"`
	Not  []string `json:"not,omitempty"`
}

// Accepted answers a submission.
type Accepted struct {
	ID, State, Reason, Durability string

	Replayed bool `json:"-"` // the broker had accepted the same key before
}

// Job is one job as the API shows it.
type Job struct {
	ID, Name, State, Reason, Site string
	Counts                        map[string]int
	SubmittedAt                   time.Time `json:"submitted_at"`
}

// Task is one task as the API shows it.
type Task struct {
	Index               int
	State, Reason, Site string
	Attempt             int
	Token               json.Number
	ExitCode            *int       `json:"exit_code"`
	StartedAt           *time.Time `json:"started_at"`
	EndedAt             *time.Time `json:"ended_at"`
	RunMs               *int64     `json:"run_ms"`
	FilesAway           FilesAway  `json:"files_away"`
}

// FilesAway says why files that a task has left are not at its owner; its zero value is that they are.
type FilesAway struct {
	Why    string
	Coming bool
}

// list is the form of every list.
type list[T any] struct {
	Items []T
	Next  string
}

// Submit sends one job.
func (s *Site) Submit(ctx context.Context, spec Spec) (Accepted, error) {
	return s.SubmitKeyed(ctx, "", spec)
}

// SubmitKeyed sends one job under an idempotency key, "" for none.
func (s *Site) SubmitKeyed(ctx context.Context, key string, spec Spec) (Accepted, error) {
	var a Accepted
	body, err := json.Marshal(spec)
	if err != nil {
		return a, fmt.Errorf("encode spec: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	data, got, err := s.Do(ctx, http.MethodPost, "/v1/jobs", header, body)
	if err != nil {
		return a, err
	}
	a.Replayed = got.Get("Idempotency-Replayed") == "true"
	return a, json.Unmarshal(data, &a)
}

// SubmitLines sends NDJSON and returns the answers in order; a line that was
// not accepted has no id.
func (s *Site) SubmitLines(ctx context.Context, lines []byte) ([]Accepted, error) {
	data, _, err := s.Do(ctx, http.MethodPost, "/v1/jobs", http.Header{"Content-Type": {"application/x-ndjson"}}, lines)
	if err != nil {
		return nil, err
	}
	var out []Accepted
	for line := range bytes.Lines(data) {
		var a Accepted
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("decode result line %d: %w", len(out), err)
		}
		out = append(out, a)
	}
	return out, nil
}

// Job returns one job.
func (s *Site) Job(ctx context.Context, id string) (Job, error) {
	return get[Job](ctx, s, "/v1/jobs/"+id)
}

// Jobs returns the newest jobs that the query selects.
func (s *Site) Jobs(ctx context.Context, query string) ([]Job, error) {
	l, err := get[list[Job]](ctx, s, "/v1/jobs?"+query)
	return l.Items, err
}

// AllJobs returns all jobs that the query selects, page by page.
func (s *Site) AllJobs(ctx context.Context, query string) ([]Job, error) {
	var all []Job
	for cursor := ""; ; {
		l, err := get[list[Job]](ctx, s, "/v1/jobs?limit=1000&"+query+cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, l.Items...)
		if l.Next == "" {
			return all, nil
		}
		cursor = "&cursor=" + url.QueryEscape(l.Next)
	}
}

// Tasks returns all tasks of a job.
func (s *Site) Tasks(ctx context.Context, id string) ([]Task, error) {
	var all []Task
	for path := "/v1/jobs/" + id + "/tasks"; ; {
		l, err := get[list[Task]](ctx, s, path)
		if err != nil {
			return nil, err
		}
		all = append(all, l.Items...)
		if l.Next == "" {
			return all, nil
		}
		path = "/v1/jobs/" + id + "/tasks?cursor=" + l.Next
	}
}

// Logs returns a task's standard output.
func (s *Site) Logs(ctx context.Context, id string, task int) (string, error) {
	data, _, err := s.Do(ctx, http.MethodGet,
		"/v1/jobs/"+id+"/logs?stream=stdout&task="+strconv.Itoa(task), nil, nil)
	return string(data), err
}

// Cancel ends a job.
func (s *Site) Cancel(ctx context.Context, id string) error {
	_, err := s.CancelAt(ctx, id)
	return err
}

// SetHold begins no more tasks of a job, or lets them begin again.
func (s *Site) SetHold(ctx context.Context, id string, hold bool) error {
	what := "release"
	if hold {
		what = "hold"
	}
	_, _, err := s.Do(ctx, http.MethodPost, "/v1/jobs/"+id+"/"+what, nil, nil)
	return err
}

// SetPriority gives jobs another priority.
func (s *Site) SetPriority(ctx context.Context, priority int, ids ...string) error {
	v := url.Values{"priority": {strconv.Itoa(priority)}, "job": ids}
	data, _, err := s.Do(ctx, http.MethodPost, "/v1/priority?"+v.Encode(), nil, nil)
	if err != nil {
		return err
	}
	var out struct {
		Items []struct {
			Job     string
			Problem *struct{ Detail string }
		}
	}
	err = json.Unmarshal(data, &out)
	for _, item := range out.Items {
		if item.Problem != nil {
			err = errors.Join(err, fmt.Errorf("priority of %s: %s", item.Job, item.Problem.Detail))
		}
	}
	return err
}

// CancelAt returns Cancel, and returns the entry that the broker had applied when it
// acknowledged.
func (s *Site) CancelAt(ctx context.Context, id string) (index uint64, err error) {
	_, header, err := s.Do(ctx, http.MethodDelete, "/v1/jobs/"+id, nil, nil)
	if err != nil {
		return 0, err
	}
	index, err = strconv.ParseUint(header.Get("X-CloudShare-Index"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cancel %s: the answer's index: %w", id, err)
	}
	return index, nil
}

// AwaitJob waits until the job's state is one of those given, and returns it.
func (s *Site) AwaitJob(ctx context.Context, id string, states ...string) (Job, error) {
	var job Job
	err := Await(ctx, fmt.Sprintf("job %s %v", id, states), func() (err error) {
		if job, err = s.Job(ctx, id); err != nil {
			return err
		}
		for _, want := range states {
			if job.State == want {
				return nil
			}
		}
		return fmt.Errorf("it is %s (%s), tasks %v", job.State, job.Reason, job.Counts)
	})
	return job, err
}
