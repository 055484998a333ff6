package api

import (
	"net/http"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Page sizes of lists.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

func (s *Server) job(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
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
	return writeJSON(w, http.StatusOK, out)
}

// awaitJob calls await once it is known that this broker has the job.
func (s *Server) awaitJob(w http.ResponseWriter, r *http.Request, id command.JobID) error {
	if err := s.askedHere(r, id); err != nil {
		return err
	}
	return s.await(w, r, id)
}

// askedHere returns an error if a blocking read asks for a job that this broker does
// not have: it is to be told now, or by another broker.
func (s *Server) askedHere(r *http.Request, id command.JobID) error {
	if !r.URL.Query().Has("index") {
		return nil
	}
	_, err := s.broker.Job(r.Context(), id)
	return err
}

// cancel answers with the job as it is once the cancellation was accepted.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
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
