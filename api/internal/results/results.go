// Package results shows what the tasks of a job have left: as lists, single files and archives. It answers for jobs of
// this site alone, whose results are here.
package results

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/served"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Broker is what results need of the broker that they stand before.
type Broker interface {
	Job(ctx context.Context, id command.JobID) (node.Job, error)
	// Results are those of a job that who asks may see all of.
	Results(ctx context.Context, id command.JobID, from uint32, most int) ([]node.TaskResult, uint32, error)
	// ResultSpec and OpenResult are called behind Results alone, which knows who asks.
	ResultSpec(id command.JobID) (spec jobspec.Spec, known bool)
	OpenResult(id command.JobID, h files.Hash) (node.BlobReader, error)
}

// Config of Results; all fields are required.
type Config struct {
	Broker Broker
	API    *rest.API
	Taking *transport.Places // one for each file or archive that is taken
	Log    zerolog.Logger
}

// Results answers for one broker.
type Results struct {
	Config
	recent recent
}

// New makes Results; Register adds their operations to the API.
func New(c Config) *Results { return &Results{Config: c} }

// Register adds the operations.
func (s *Results) Register() {
	id, bytesOf := rest.IDParam(), rest.Binary()
	task := rest.QueryParam("task", huma.TypeInteger, "index of the only task to look at")
	s.API.Handle(huma.Operation{
		OperationID: "files", Method: http.MethodGet, Path: "/v1/jobs/{id}/files", Summary: "The files that a job's tasks have left",
		Description: "By task, then path: of each task the attempt that counts, once its files are here. Only the owner's broker has them; 410 results-gone when their time is over.",
		Parameters: []*huma.Param{
			id, task, rest.QueryParam("limit", huma.TypeInteger, "1 to 1000, default 100"), rest.QueryParam("cursor", huma.TypeString, "next of the page before"),
		},
		Responses: s.API.Responses(http.StatusOK, wire.TypeJSON, s.API.Schema(wire.List[wire.ResultFile]{}), 400, 403,
			404, 410, 429, 503),
	}, s.list)
	s.API.Handle(huma.Operation{
		OperationID: "file", Method: http.MethodGet, Path: "/v1/jobs/{id}/files/{path}", Summary: "A file that a task has left",
		Description: "The path may have slashes, escaped or not. As an attachment, and in ranges if asked for: those are not checked by the hash (ETag), the whole is, and breaks off before its end if it is damaged.",
		Parameters: []*huma.Param{
			id, rest.PathParam("path", "as the list has it"),
			rest.QueryParam("task", huma.TypeInteger, "index, needed if the job has several tasks"),
		},
		Responses: s.API.Responses(http.StatusOK, "application/octet-stream", bytesOf, 400, 403, 404, 410, 429, 503),
	}, s.file)
	s.API.Handle(huma.Operation{
		OperationID: "files-tar", Method: http.MethodGet, Path: "/v1/jobs/{id}/files.tar", Summary: "The files that a job's tasks have left, as an archive",
		Description: "Of one task its paths, of all tasks TASK/PATH each; of a job with one task its paths. The same files are the same archive, to the byte. A connection that is cut is no end of it: then something was damaged.",
		Parameters:  []*huma.Param{id, task},
		Responses:   s.API.Responses(http.StatusOK, "application/x-tar", bytesOf, 400, 403, 404, 410, 429, 503),
	}, s.tar)
}

// asked is what a request is about.
type asked struct {
	job node.Job
	// only is the position of the task that is asked for, if one is.
	only uint32
	one  bool
}

// ask reads the job and the task of a request. Who may not see all of the job is told so by the first Results.
func (s *Results) ask(r *http.Request, param func(string) string) (a asked, err error) {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return a, err
	}
	if _, _, err = s.Broker.Results(r.Context(), id, 0, 1); err != nil {
		return a, err
	}
	a.job, err = s.Broker.Job(r.Context(), id)
	if spec, known := s.Broker.ResultSpec(id); known && errors.Is(err, node.ErrNotFound) { // it has ended long ago
		a.job, err = node.Job{ID: id, Spec: spec}, nil
	}
	if err != nil {
		return a, err
	}
	if !r.URL.Query().Has("task") {
		return a, nil
	}
	index, err := rest.QueryUint(r, "task", 0, 0, command.MaxCount-1)
	if err != nil {
		return a, err
	}
	a.one = true
	if a.only, err = position(&a.job, uint32(index)); err != nil {
		return a, err
	}
	return a, nil
}

// position returns where a task's index stands in a job.
func position(job *node.Job, index uint32) (uint32, error) {
	at, there := index, index < job.Spec.Count
	if job.Spec.Indices.Len() > 0 {
		at, there = job.Spec.Indices.Before(index), job.Spec.Indices.Has(index)
	}
	if !there {
		return 0, fmt.Errorf("task %d of job %s: %w", index, job.ID, node.ErrNotFound)
	}
	return at, nil
}

// indexOf returns the index of a task at a position.
func indexOf(job *node.Job, at uint32) uint32 {
	if at < job.Spec.Indices.Len() {
		return job.Spec.Indices.At(at)
	}
	return at
}

// resultsPage is how many tasks are asked for at a time.
const resultsPage = 1000

// each calls f for every task with results from a position on, until f says that it is enough.
func (s *Results) each(
	ctx context.Context, a *asked, from uint32, f func(node.TaskResult) (more bool, err error),
) error {
	most := resultsPage
	if a.one {
		from, most = max(from, a.only), 1
	}
	for {
		list, next, err := s.Broker.Results(ctx, a.job.ID, from, most)
		if err != nil {
			return err
		}
		for _, t := range list {
			if a.one && t.Task != a.only {
				return nil
			}
			if more, err := f(t); err != nil || !more {
				return err
			}
		}
		if next == 0 || a.one {
			return nil
		}
		from = next
	}
}

// file answers with one file of one task.
func (s *Results) file(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	name, err := rest.DeepParam(r, 5)
	if err != nil {
		return err
	}
	a, err := s.ask(r, param)
	if err != nil {
		return err
	}
	if !a.one && a.job.Spec.Count > 1 {
		return problem.BadQuery("task", "", "is needed: the job has several tasks")
	}
	a.one = true
	leave, err := s.Taking.Enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	entry, err := s.find(r.Context(), &a, name)
	if err != nil {
		return err
	}
	blob, err := s.open(a.job.ID, entry)
	if err != nil {
		return err
	}
	defer blob.Close()
	served.File(w, r, path.Base(entry.Path), entry.Hash, blob)
	return nil
}

// find returns a task's file of a path.
func (s *Results) find(ctx context.Context, a *asked, name string) (entry files.Entry, err error) {
	found := false
	err = s.each(ctx, a, 0, func(t node.TaskResult) (bool, error) {
		by, cause := s.byPath(a.job.ID, t)
		entry, found = by[name]
		return true, cause
	})
	if err == nil && !found {
		err = fmt.Errorf("file %s of task %d of job %s: %w", problem.OneLine(name), indexOf(&a.job, a.only), a.job.ID,
			node.ErrNotFound)
	}
	return entry, err
}

// byPath returns a task's files by path.
func (s *Results) byPath(id command.JobID, t node.TaskResult) (map[string]files.Entry, error) {
	key := manifestKey{id, t.Manifest.Hash}
	if by := s.recent.of(key); by != nil {
		return by, nil
	}
	by := map[string]files.Entry{}
	if err := s.entries(id, t, func(_ int, e files.Entry) { by[e.Path] = e }); err != nil {
		return nil, err
	}
	s.recent.keep(key, t.Manifest.Size, by)
	return by, nil
}

// open opens a file's bytes, wherever they are.
func (s *Results) open(id command.JobID, e files.Entry) (node.BlobReader, error) {
	if e.Inline != nil {
		return served.Bytes(e.Inline), nil
	}
	blob, err := s.Broker.OpenResult(id, e.Hash)
	return blob, gone(id, err)
}

// gone says of a blob that a result names, and that is not there, that its job's results are gone.
func gone(id command.JobID, err error) error {
	if err == nil || !lost(err) || errors.Is(err, node.ErrResultsGone) { // the last: it is said already
		return err
	}
	return fmt.Errorf("results of job %s: %w: %w", id, node.ErrResultsGone, err)
}
