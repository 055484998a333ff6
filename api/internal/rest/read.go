package rest

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// Read registers a plain read, whose query huma parses. before may hold it back or
// refuse it.
func Read[I, O any](
	a *API, id, path, summary string, before func(http.ResponseWriter, *http.Request) error,
	h func(context.Context, *I) (*O, error),
) {
	op := huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Errors: []int{400, 503}}
	op.Middlewares = huma.Middlewares{
		a.first(onlyKnownOnce),
		a.first(func(_ huma.Context, w http.ResponseWriter, r *http.Request) error { return before(w, r) }),
	}
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			return nil, problem.Logged(a.log, err)
		}
		return out, nil
	})
}

// first does something before an operation of huma's, whose error ends it.
func (a *API) first(
	do func(huma.Context, http.ResponseWriter, *http.Request) error,
) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		w, r := exchange(ctx)
		if err := do(ctx, w, r); err != nil {
			a.Fail(w, r, err)
			return
		}
		next(ctx)
	}
}

// onlyKnownOnce refuses repeated parameters of huma's reads, which would take the first.
func onlyKnownOnce(ctx huma.Context, _ http.ResponseWriter, r *http.Request) error {
	return onlyOnce(r, repeatable(ctx.Operation().Parameters))
}
