package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/api/wire"
)

// probes answers what machines ask about the program: whether it is well, metrics, the
// documents.
type probes struct {
	broker interface {
		source.Health
		Site() string
	}
	api     *rest.API
	metrics *metrics
	pages   *web.Pages
}

// register adds the operations.
func (p *probes) register() {
	p.probe("livez", "The process and its store make progress", p.broker.Live, http.StatusServiceUnavailable, "not-live")
	p.probe("readyz", "A leader is known and this broker has caught up", p.broker.Ready, http.StatusServiceUnavailable, "not-ready")
	p.api.Handle(huma.Operation{
		OperationID: "metrics", Method: http.MethodGet, Path: "/metrics", Summary: "Prometheus metrics",
		Parameters: []*huma.Param{{Name: "name[]", In: "query", Schema: &huma.Schema{Type: huma.TypeString}, Description: "only this family"}},
		Responses:  p.api.Responses(http.StatusOK, "text/plain", &huma.Schema{Type: huma.TypeString}),
	}, func(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
		p.metrics.handler.ServeHTTP(w, r)
		return nil
	})
	p.documents()
}

// probe answers 200, or a problem with the reason.
func (p *probes) probe(name, summary string, ask func() error, status int, problemName string) {
	p.api.Handle(huma.Operation{
		OperationID: name, Method: http.MethodGet, Path: "/" + name, Summary: summary,
		Responses: p.api.Responses(http.StatusOK, wire.TypeJSON, p.api.Schema(map[string]string{}), status),
	}, func(w http.ResponseWriter, _ *http.Request, _ func(string) string) error {
		if err := ask(); err != nil {
			p := problem.New(status, problemName, "The broker is "+problemName, problem.OneLine(err.Error()))
			p.RetryAfter = 1
			return p
		}
		return rest.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok", "site": p.broker.Site()})
	})
}
