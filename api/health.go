package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
)

// health registers what machines ask: probes, metrics, the documents.
func (s *Server) health() {
	s.probe("livez", "The process and its store make progress", s.broker.Live, http.StatusServiceUnavailable, "not-live")
	s.probe("readyz", "A leader is known and this broker has caught up", s.broker.Ready, http.StatusServiceUnavailable, "not-ready")
	s.api.Handle(huma.Operation{
		OperationID: "metrics", Method: http.MethodGet, Path: "/metrics", Summary: "Prometheus metrics",
		Parameters: []*huma.Param{{Name: "name[]", In: "query", Schema: &huma.Schema{Type: huma.TypeString}, Description: "only this family"}},
		Responses:  s.api.Responses(http.StatusOK, "text/plain", &huma.Schema{Type: huma.TypeString}),
	}, func(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
		s.metrics.handler.ServeHTTP(w, r)
		return nil
	})
	s.documents()
}

// probe answers 200, or a problem with the reason.
func (s *Server) probe(name, summary string, ask func() error, status int, problemName string) {
	s.api.Handle(huma.Operation{
		OperationID: name, Method: http.MethodGet, Path: "/" + name, Summary: summary,
		Responses: s.api.Responses(http.StatusOK, wire.TypeJSON, s.api.Schema(map[string]string{}), status),
	}, func(w http.ResponseWriter, _ *http.Request, _ func(string) string) error {
		if err := ask(); err != nil {
			p := problem.New(status, problemName, "The broker is "+problemName, problem.OneLine(err.Error()))
			p.RetryAfter = 1
			return p
		}
		return rest.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok", "site": s.broker.Site()})
	})
}
