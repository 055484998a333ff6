package rest

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
)

const (
	bearer          = "token"           // name of the security scheme in the document
	unauthenticated = "Unauthenticated" // and of the answer to who has none
)

// Protect documents which of the operations so far need a token: all but those of open paths. The gate sees to it.
func (a *API) Protect(open func(path string) bool) {
	c := a.OpenAPI().Components
	c.SecuritySchemes = map[string]*huma.SecurityScheme{bearer: {
		Type: "http", Scheme: "bearer",
		Description: "the site's token, cst_ID_SECRET_CRC, or a JWT of its identity provider; send it by HTTPS, " +
			"or on loopback; the SHA-256 of the key of the broker's certificate may stand behind the token",
	}}
	c.Responses = map[string]*huma.Response{unauthenticated: {
		Description: http.StatusText(http.StatusUnauthorized),
		Headers:     map[string]*huma.Param{"WWW-Authenticate": {Schema: &huma.Schema{Type: huma.TypeString}, Description: "Bearer"}},
		Content:     map[string]*huma.MediaType{wire.TypeProblem: {Schema: a.Schema(problem.Problem{})}},
	}}
	for path, item := range a.OpenAPI().Paths {
		if open(path) {
			continue
		}
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op != nil {
				op.Security = []map[string][]string{{bearer: {}}}
				op.Responses["401"] = &huma.Response{
					Ref: "#/components/responses/" + unauthenticated, Description: http.StatusText(http.StatusUnauthorized),
				}
			}
		}
	}
}
