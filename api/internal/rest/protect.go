package rest

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
)

const (
	bearer          = "token"           // name of the security scheme in the document
	unauthenticated = "Unauthenticated" // and of the answer to who has none
	tooMany         = "TooManyRequests" // and to who sends too many requests
)

// Protect documents which of the operations so far need a token: all but those of open paths. The gate sees to it.
func (a *API) Protect(open func(path string) bool) {
	c := a.OpenAPI().Components
	c.SecuritySchemes = map[string]*huma.SecurityScheme{bearer: {
		Type: "http", Scheme: "bearer",
		Description: "the site's token, cst_ID_SECRET_CRC, or a JWT of its identity provider; send it by HTTPS, " +
			"or on loopback; the SHA-256 of the key of the broker's certificate may stand behind the token",
	}}
	problems := map[string]*huma.MediaType{wire.TypeProblem: {Schema: a.Schema(problem.Problem{})}}
	c.Responses = map[string]*huma.Response{
		unauthenticated: {
			Description: http.StatusText(http.StatusUnauthorized), Content: problems,
			Headers: map[string]*huma.Param{"WWW-Authenticate": {Schema: &huma.Schema{Type: huma.TypeString}, Description: "Bearer"}},
		},
		tooMany: {
			Description: http.StatusText(http.StatusTooManyRequests), Content: problems,
			Headers: map[string]*huma.Param{"Retry-After": {Schema: &huma.Schema{Type: huma.TypeInteger}, Description: "seconds"}},
		},
	}
	for path, item := range a.OpenAPI().Paths {
		if open(path) {
			continue
		}
		for _, op := range []*huma.Operation{
			item.Get, item.Post, item.Put, item.Delete, item.Patch, item.Head, item.Options,
		} {
			if op != nil {
				op.Security = []map[string][]string{{bearer: {}}}
				refer(op, http.StatusUnauthorized, unauthenticated)
				refer(op, http.StatusTooManyRequests, tooMany)
			}
		}
	}
}

// refer documents an answer of many operations, where the operation does not describe its own.
func refer(op *huma.Operation, status int, name string) {
	key := strconv.Itoa(status)
	if op.Responses[key] == nil {
		op.Responses[key] = &huma.Response{Ref: "#/components/responses/" + name, Description: http.StatusText(status)}
	}
}
