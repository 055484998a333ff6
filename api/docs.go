package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/web"
)

// documents shows both forms of this API's description. huma's own pages load
// scripts from elsewhere; these work offline.
func (p *probes) documents() {
	p.static("openapi", "/openapi.json", "application/openapi+json", "This API as OpenAPI 3.1", func(w http.ResponseWriter, _ *http.Request) error {
		body, err := json.Marshal(p.api.OpenAPI())
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		_, _ = w.Write(body) // the client may be gone
		return nil
	})
	p.static("docs", "/docs", "text/html; charset=utf-8", "This API for people", func(w http.ResponseWriter, r *http.Request) error {
		p.pages.Docs(w, r, p.operations())
		return nil
	})
}

func (p *probes) static(id, path, kind, summary string, show func(w http.ResponseWriter, r *http.Request) error) {
	p.api.Handle(huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary,
		Responses: p.api.Responses(http.StatusOK, kind, &huma.Schema{Type: huma.TypeString}),
	}, func(w http.ResponseWriter, r *http.Request, _ func(string) string) error { return show(w, r) })
}

// operations lists what the API can do, by path and method.
func (p *probes) operations() []web.Operation {
	var out []web.Operation
	for path, item := range p.api.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put,
			http.MethodDelete: item.Delete,
		} {
			if op != nil {
				out = append(out, described(method, path, op))
			}
		}
	}
	slices.SortFunc(out, func(a, b web.Operation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return out
}

// described returns an operation for people.
func described(method, path string, op *huma.Operation) web.Operation {
	out := web.Operation{
		ID: op.OperationID, Method: method, Path: path, Summary: op.Summary,
		Description: op.Description,
	}
	for _, p := range op.Parameters {
		out.Params = append(out.Params, web.Param{Name: p.Name, In: p.In, Description: p.Description})
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		out.Answers = append(out.Answers, web.Answer{Status: status, Description: op.Responses[status].Description})
	}
	return out
}
