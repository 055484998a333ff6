package api

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/node"
)

// TestStateThatIsNotKnownYet: a broker that has not rebuilt the state says so,
// instead of showing an empty federation; what it knows of itself it tells.
func TestStateThatIsNotKnownYet(t *testing.T) {
	f := newFake("site-1")
	f.outdated = fmt.Errorf("%w: no quorum was found", node.ErrNotReady)
	s := newServer(f)
	for path, want := range map[string]int{
		"/v1/jobs": 503, "/v1/sites": 503, "/v1/queue": 503, "/v1/quota": 503, "/v1/ledger": 503, "/v1/plausibility": 503, "/v1/policy": 503, "/v1/status": 200, "/livez": 200,
	} {
		w := ask(s, "GET", path, "", "")
		if w.Code != want || (want == 503) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%s: %d, Retry-After %q; want %d", path, w.Code, w.Header().Get("Retry-After"), want)
		}
	}
	if w := ask(s, "PUT", "/v1/policy", js, `{"lease_ms":1}`); w.Code != 503 {
		t.Errorf("a change on top of an unknown policy: %d %s", w.Code, w.Body)
	}
}

// TestJobsAreFoundByName: a part of a name, whatever its case, reaches the broker.
func TestJobsAreFoundByName(t *testing.T) {
	f := newFake("site-1")
	s := newServer(f)
	if w := ask(s, "GET", "/v1/jobs?name=NIGHT%20ly&state=queued", "", ""); w.Code != 200 || f.query.Name != "night ly" || f.query.State != "queued" {
		t.Errorf("%d %s: asked for %+v", w.Code, w.Body, f.query)
	}
}
