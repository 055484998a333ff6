package auth

import (
	"net/http"
	"strings"

	"github.com/cloudshare/cloudshare/node/access"
)

// open are the paths that everybody may ask for: they tell whether the broker is well, and what its API is like.
var open = map[string]bool{"/livez": true, "/readyz": true, "/openapi.json": true, "/docs": true, PathLogin: true}

// probes are open paths whose answer costs no more than a refusal: they are not bounded, so that whoever shares an
// address with what watches the broker cannot have it taken for dead.
var probes = map[string]bool{"/livez": true, "/readyz": true}

// Paths of the pages that open and end sessions.
const (
	PathLogin  = "/login"
	PathLogout = "/logout"
)

const (
	pathTokens = "/v1/tokens"
	rootOfTES  = "/ga4gh/tes/"
	tasksOfTES = rootOfTES + "v1/tasks"
)

// Open reports whether everybody may ask for a path, as it is escaped in the request: only then is it what the router
// looks at.
func Open(path string) bool {
	name, asset := strings.CutPrefix(path, "/assets/")
	return open[path] || asset && !strings.ContainsAny(name, "/%")
}

// Needed returns the least role for a request. What changes something and is not known here takes the operator.
func Needed(r *http.Request) access.Role {
	path := r.URL.Path
	switch {
	case path == pathTokens, strings.HasPrefix(path, pathTokens+"/"), // to look at them, too
		path == "/v1/audit", path == "/users": // they tell of all users
		return access.Operator
	case Reads(r), path == PathLogout:
		return access.ReadOnly
	case strings.HasPrefix(path, "/tokens/"): // own ones, which the page sees to
		return access.User
	case path == "/v1/jobs", path == "/v1/cancel", path == "/v1/priority",
		strings.HasPrefix(path, "/v1/jobs/"), strings.HasPrefix(path, "/jobs/"):
		return access.User
	case path == tasksOfTES, strings.HasPrefix(path, tasksOfTES+"/"):
		return access.User
	case OwnBytes(path), path == "/v1/imports":
		return access.User
	}
	return access.Operator
}

// OwnBytes reports whether a path is one by which users send bytes into their own place in the store: that is no act by
// itself, the job that names them is.
func OwnBytes(path string) bool {
	return path == "/v1/uploads" || strings.HasPrefix(path, "/v1/uploads/") || strings.HasPrefix(path, "/v1/blobs/")
}

// Reads reports whether a request changes nothing.
func Reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
