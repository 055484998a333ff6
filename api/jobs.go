package api

import (
	"net/http"

	"github.com/cloudshare/cloudshare/api/internal/rest"
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
	if out.Failed, err = s.firstFailed(r.Context(), job); err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusOK, out)
}

// awaitJob is await, once it is known that this broker has the job.
func (s *Server) awaitJob(w http.ResponseWriter, r *http.Request, id fsm.JobID) error {
	if err := s.askedHere(r, id); err != nil {
		return err
	}
	return s.reads.await(w, r, id)
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
		return rest.WriteJSON(w, http.StatusAccepted, wire.Accepted{ID: id.String(), State: "cancelled"})
	}
	return rest.WriteJSON(w, http.StatusAccepted, jobOf(job))
}
