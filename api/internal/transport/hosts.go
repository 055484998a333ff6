package transport

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// errForeignHost: the request names a host that this broker does not go by. A
// web page has a browser ask so, once its own name points at this machine (DNS
// rebinding); then its origin and the host are the same, and no other check
// can tell it from the broker's own pages.
var errForeignHost = problem.New(http.StatusMisdirectedRequest, "foreign-host", "This broker does not go by that host name",
	"ask by address or as localhost; the operator allows other names with http_names")

// errForeignPage: a web page of somebody else had the user's browser ask.
var errForeignPage = problem.New(http.StatusForbidden, "foreign-page", "A web page of another origin may not change anything",
	"the browser says that another site's page sent this; ask from the API's own pages or from a program")

// Guard keeps out other people's web pages: a browser on this machine reaches the
// loopback, too.
type Guard struct {
	names   hostNames
	origins http.CrossOriginProtection
}

// NewGuard makes one for a broker that goes by these names.
func NewGuard(names []string) *Guard { return &Guard{names: newHostNames(names)} }

// Admit refuses what a web page of somebody else had the user's browser ask.
func (g *Guard) Admit(r *http.Request) error {
	if !g.names.allows(r.Host) {
		return errForeignHost
	}
	if g.origins.Check(r) != nil {
		return errForeignPage
	}
	return nil
}

// hostNames are the names that a broker goes by, as hostName writes them.
type hostNames map[string]bool

func newHostNames(names []string) hostNames {
	h := hostNames{}
	for _, name := range names {
		if name = hostName(name); name != "" {
			h[name] = true
		}
	}
	return h
}

// allows reports whether a Host header may be answered: an address (nobody can
// point it elsewhere), localhost and what is below it, or one of the names.
// Programs may send none; browsers always do.
func (h hostNames) allows(host string) bool {
	name := hostName(host)
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || h[name] {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}

// hostName returns a host without port, brackets, final dot and capitals.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
