package api

import (
	"net/http"
	"strconv"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
)

// Page sizes of lists.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

func (s *Server) job(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := fsm.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	if err = s.awaitJob(w, r, id); err != nil {
		return err
	}
	job, err := s.broker.Job(r.Context(), id)
	if err != nil {
		return err
	}
	out := jobOf(job)
	out.Freshness = freshness(r.Context())
	return writeJSON(w, http.StatusOK, out)
}

// awaitJob is await, once it is known that this broker has the job.
func (s *Server) awaitJob(w http.ResponseWriter, r *http.Request, id fsm.JobID) error {
	if err := s.askedHere(r, id); err != nil {
		return err
	}
	return s.await(w, r, id)
}

// askedHere is an error if a blocking read asks for a job that this broker does
// not have: it is to be told now, or by another broker.
func (s *Server) askedHere(r *http.Request, id fsm.JobID) error {
	if !r.URL.Query().Has("index") {
		return nil
	}
	_, err := s.broker.Job(r.Context(), id)
	return err
}

// cancel answers with the job as it is once the cancellation was accepted.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := fsm.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	if err = s.broker.Cancel(r.Context(), id); err != nil {
		return err
	}
	job, err := s.broker.Job(r.Context(), id)
	if err != nil { // cancelled all the same
		return writeJSON(w, http.StatusAccepted, wire.Accepted{ID: id.String(), State: "cancelled"})
	}
	return writeJSON(w, http.StatusAccepted, jobOf(job))
}

// tasks pages by the next index, which is never 0 while there is more.
func (s *Server) tasks(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := fsm.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	limit, err := queryUint(r, "limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	from, err := taskCursor(r)
	if err != nil {
		return err
	}
	if err = s.awaitJob(w, r, id); err != nil {
		return err
	}
	tasks, next, err := s.broker.Tasks(r.Context(), id, from, int(limit))
	if err != nil {
		return err
	}
	page := wire.List[wire.Task]{Items: make([]wire.Task, 0, len(tasks)), Freshness: freshness(r.Context())}
	for _, t := range tasks {
		page.Items = append(page.Items, taskOf(t))
	}
	if next != 0 {
		page.Next = strconv.FormatUint(uint64(next), 10)
	}
	return writeJSON(w, http.StatusOK, page)
}

func taskCursor(r *http.Request) (uint32, error) {
	if r.URL.Query().Get("cursor") == "" { // as a list's last page gives it
		return 0, nil
	}
	from, err := queryUint(r, "cursor", 0, 0, fsm.MaxCount)
	return uint32(from), err
}
