package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"sort"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/wire"
)

// docsPage works offline: huma's own renderers load scripts from elsewhere.
//
//go:embed docs.html
var docsPage string

var docsTemplate = template.Must(template.New("docs").Parse(docsPage))

// humaConfig turns off everything of huma that writes files of its own.
func humaConfig(version string) huma.Config {
	cfg := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "CloudShare", Version: version,
				Description: "Every answer carries " + wire.HeaderIndex + ". Errors are RFC 9457 problems with a stable type.",
			},
			Components: &huma.Components{Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)},
		},
		Formats:                      map[string]huma.Format{wire.TypeJSON: huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat:                wire.TypeJSON,
		RejectUnknownQueryParameters: true,
	}
	return cfg
}

// documents renders both documents once, after all operations are known.
func (s *Server) documents() {
	s.static("openapi", "/openapi.json", "application/openapi+json", "This API as OpenAPI 3.1", func() ([]byte, error) {
		return json.Marshal(s.huma.OpenAPI())
	})
	s.static("docs", "/docs", "text/html; charset=utf-8", "This API for people", func() ([]byte, error) {
		var page bytes.Buffer
		err := docsTemplate.Execute(&page, s.operations())
		return page.Bytes(), err
	})
}

func (s *Server) static(id, path, kind, summary string, render func() ([]byte, error)) {
	s.raw(huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary,
		Responses: s.responses(http.StatusOK, kind, &huma.Schema{Type: huma.TypeString}),
	}, func(w http.ResponseWriter, _ *http.Request, _ func(string) string) error {
		body, err := render()
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = w.Write(body) // the client may be gone
		return nil
	})
}

// operation is one line of the page.
type operation struct {
	Method, Path string
	Op           *huma.Operation
}

// operations lists what the API can do, by path and method.
func (s *Server) operations() []operation {
	var out []operation
	for path, item := range s.huma.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodDelete: item.Delete,
		} {
			if op != nil {
				out = append(out, operation{method, path, op})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].Path+" "+out[i].Method < out[j].Path+" "+out[j].Method
	})
	return out
}
