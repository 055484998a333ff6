package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/audit"
)

// recordedUsers are users of a server that keeps a record.
func recordedUsers(t *testing.T) *users {
	t.Helper()
	u := newUsers(t)
	record, err := audit.Open(audit.Options{Dir: t.TempDir(), Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = record.Close() })
	u.Server = New(Config{Access: u.store, Audit: record}, u.fake, prometheus.NewRegistry(), zerolog.Nop())
	return u
}

// TestAuditSaysWhoDidWhat: each request that changes something is recorded with who asked, what for, and what became of
// it, refused ones too; reads and those without a token are not, and only the operator reads the record.
func TestAuditSaysWhoDidWhat(t *testing.T) {
	u := recordedUsers(t)
	id := u.submit("alice").ID
	u.as("bob", "DELETE", "/v1/jobs/"+id, "")
	u.as("operator", "DELETE", "/v1/jobs/"+id, "")
	u.as("operator", "POST", "/v1/cancel?job="+id+"/0&job=site-1.9", "")
	u.as("alice", "GET", "/v1/jobs/"+id, "")
	ask(u.Server, "DELETE", "/v1/jobs/"+id, "", "")
	for _, who := range []string{"alice", "bob"} {
		u.refused(who, u.as(who, "GET", "/v1/audit", ""), http.StatusForbidden, "forbidden")
	}
	w := u.as("operator", "GET", "/v1/audit?who="+id, "")
	got := w.Body.String()
	last := -1
	for _, part := range []string{
		`"action":"POST /v1/cancel","targets":["` + id + `/0","site-1.9"],"status":200`,
		`"action":"DELETE /v1/jobs/` + id + `","targets":["` + id + `"],"status":202`,
		`"user":"bob","role":"user"`, `"status":403`,
		`"user":"alice","role":"user"`, `"action":"POST /v1/jobs","targets":["` + id + `"],"status":202`,
	} {
		at := strings.Index(got, part)
		if at <= last {
			t.Errorf("%s: at %d, after %d, in %s", part, at, last, got)
		}
		last = at
	}
	if n := strings.Count(got, `"action"`); w.Code != 200 || n != 4 {
		t.Errorf("%d: %d entries: %s", w.Code, n, got)
	}
	if got = u.as("operator", "GET", "/v1/audit?who=bob&limit=5", "").Body.String(); strings.Count(got, `"action"`) != 1 {
		t.Errorf("bob did %s", got)
	}
	made := u.as("operator", "POST", "/v1/tokens", `{"name":"ci","user":"carol","role":"user"}`).Header().Get("Location")
	made = made[strings.LastIndexByte(made, '/')+1:]
	if got = u.as("operator", "GET", "/v1/audit?who="+made, "").Body.String(); made == "" || strings.Count(got, `"action"`) != 1 {
		t.Errorf("token %s was made by %s", made, got)
	}
	if w = u.as("operator", "GET", "/v1/audit?limit=0", ""); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
