package rest

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// This is the one file that knows the router. huma's own adapter for echo is not
// used because it links two major versions of echo; what huma sees of a request is
// its adapter's for net/http.

// router is the adapter between echo and huma.
type router struct{ *echo.Echo }

var _ huma.Adapter = router{}

// newRouter returns a router on which every request, also one that ends as 404 or 405,
// passes the gate.
func newRouter(gate Gate, logger zerolog.Logger) router {
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		if !c.Response().Committed {
			gate.Refuse(c.Response(), c.Request(), problemOf(err, c.Request(), logger))
		}
	}
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { return around(gate, c, next) }
	})
	return router{e}
}

// around takes a request through the gate.
func around(gate Gate, c echo.Context, next echo.HandlerFunc) error {
	begin := time.Now()
	res := c.Response()
	w, r, mark := gate.Begin(res.Writer, c.Request())
	res.Writer = w
	c.SetRequest(r)
	res.Before(func() { mark(res.Header()) })
	r, release, err := gate.Admit(res, r)
	defer release()
	if err == nil {
		c.SetRequest(r)
		res.Before(func() { gate.Answer(r, res.Status, res.Header()) })
		err = next(c)
	}
	if err != nil {
		c.Error(err)
	}
	if !res.Committed { // an empty answer, such as no metric of the name asked for
		res.WriteHeader(http.StatusOK)
	}
	gate.Observe(cmp.Or(c.Path(), "unknown"), r.Method, res.Status, time.Since(begin))
	return nil
}

// problemOf words what is refused before an operation is reached.
func problemOf(err error, r *http.Request, logger zerolog.Logger) *problem.Problem {
	var refused *problem.Problem
	if errors.As(err, &refused) {
		return refused
	}
	var he *echo.HTTPError
	if !errors.As(err, &he) {
		logger.Error().Err(err).Str("path", problem.OneLine(r.URL.Path)).Msg("router failed")
		return problem.Of(err)
	}
	detail := problem.OneLine(r.Method + " " + r.URL.Path)
	if he.Code == http.StatusNotFound {
		detail += "; see /docs for what exists"
	}
	return problem.OfStatus(he.Code, detail)
}

// Handle implements huma.Adapter: {name} becomes :name, or at the end of a deep path whatever follows.
func (r router) Handle(op *huma.Operation, handler func(huma.Context)) {
	path := strings.NewReplacer("{", ":", "}", "").Replace(op.Path)
	if deep[op.Path] {
		path = path[:strings.LastIndexByte(path, ':')] + "*"
	}
	for _, method := range methods(op.Method, endless[op.Path]) {
		r.Add(method, path, func(c echo.Context) error {
			q := c.Request()
			for _, name := range c.ParamNames() {
				q.SetPathValue(name, c.Param(name))
			}
			handler(humago.NewContext(op, q, c.Response()))
			return nil
		})
	}
}

// endless are the reads that stream; they have no HEAD.
var endless = map[string]bool{
	"/v1/events": true, "/v1/jobs/{id}/logs": true, "/v1/archive": true, "/v1/jobs/{id}/files.tar": true,
}

// deep are the paths whose last part may have slashes: see DeepParam.
var deep = map[string]bool{"/v1/jobs/{id}/files/{path}": true}

// DeepParam returns the last part of a deep path, which begins behind so many slashes: slashes in it may be escaped.
func DeepParam(r *http.Request, slashes int) (string, error) {
	parts := strings.SplitN(r.URL.EscapedPath(), "/", slashes+1)
	text, err := url.PathUnescape(parts[len(parts)-1])
	if err != nil || len(parts) <= slashes {
		return "", problem.OfStatus(http.StatusNotFound, "the path is no path of a file")
	}
	return text, nil
}

// methods returns those that a route answers: HEAD is GET, whose body the server
// leaves out.
func methods(method string, streams bool) []string {
	if method == http.MethodGet && !streams {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{method}
}

// page lets people look, beside the API's operations.
func (r router) page(
	method, path string, streams bool, h func(w http.ResponseWriter, r *http.Request, param func(string) string),
) {
	path = strings.NewReplacer("{", ":", "}", "").Replace(path)
	for _, method := range methods(method, streams) {
		r.Add(method, path, func(c echo.Context) error {
			h(c.Response(), c.Request(), c.Param)
			return nil
		})
	}
}

// exchange returns what a handler that streams or forwards works on.
func exchange(ctx huma.Context) (http.ResponseWriter, *http.Request) {
	r, w := humago.Unwrap(ctx)
	return w, r
}
