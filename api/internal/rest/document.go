package rest

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// IDParam documents the job in a path.
func IDParam() *huma.Param {
	return &huma.Param{Name: "id", In: "path", Required: true, Description: "SITE.NUMBER", Schema: &huma.Schema{Type: huma.TypeString}}
}

// PathParam documents a part of a path.
func PathParam(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "path", Required: true, Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
}

// Binary documents bytes, whatever they are.
func Binary() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Format: "binary"} }

// Body documents a body of one type.
func Body(kind string, schema *huma.Schema) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{kind: {Schema: schema}}}
}

// QueryParam documents a parameter of a query.
func QueryParam(name, kind, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: kind}}
}

// StatesParam documents the parameter that TaskStates reads.
func StatesParam() *huma.Param {
	return ListParam("state", "only tasks in this state; may be repeated")
}

// ListParam documents a parameter that may be repeated.
func ListParam(name, doc string) *huma.Param {
	p := QueryParam(name, huma.TypeArray, doc)
	p.Schema.Items = &huma.Schema{Type: huma.TypeString}
	return p
}

// repeatable says of each query parameter whether it may stand twice.
func repeatable(params []*huma.Param) map[string]bool {
	known := map[string]bool{}
	for _, p := range params {
		if p.In == "query" {
			known[p.Name] = p.Schema.Type == huma.TypeArray
		}
	}
	return known
}

// onlyQueries refuses unknown and repeated parameters: one that is silently
// ignored hurts whoever mistyped it.
func onlyQueries(r *http.Request, known map[string]bool) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	for name := range r.URL.Query() {
		if _, ok := known[name]; !ok {
			return problem.BadQuery(problem.OneLine(name), "", "is not a parameter of this path")
		}
	}
	return onlyOnce(r, known)
}

// onlyOnce refuses parameters of the list that stand twice and may not.
func onlyOnce(r *http.Request, known map[string]bool) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	for name, values := range r.URL.Query() {
		if many, ok := known[name]; ok && !many && len(values) > 1 {
			return problem.BadQuery(name, values[1], "stands twice")
		}
	}
	return nil
}
