package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// shows says which of the lines /metrics does not have.
func (u *users) shows(when string, lines ...string) {
	u.t.Helper()
	text := u.as("operator", "GET", "/metrics", "").Body.String()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			u.t.Errorf("%s: no line %q in /metrics", when, line)
		}
	}
}

// Jobs beyond their user's quota are counted by its kind, one at a time and by lines; no metric names a user.
func TestRefusalsByQuotaAreCounted(t *testing.T) {
	u := newUsers(t)
	u.shows("before", `cloudshare_http_jobs_over_quota_total{kind="tasks"} 0`, `cloudshare_http_jobs_over_quota_total{kind="bytes"} 0`)
	u.fake.submit = &node.UserQuotaError{User: "alice", Use: fsm.Use{Quota: node.UserTasks, Limit: 1}, Need: 2}
	if w := u.as("alice", "POST", "/v1/jobs", `{"command":["true"]}`); w.Code != http.StatusForbidden {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	u.fake.submit = fmt.Errorf("in vain: %w", &node.UserQuotaError{Use: fsm.Use{Quota: node.UserMilliCPU}})
	ask(u.Server, "POST", "/v1/jobs", "application/x-ndjson", "{\"command\":[\"true\"]}\n{\"command\":[\"true\"]}\n",
		"Authorization", "Bearer "+u.tokens["alice"])
	u.fake.submit = node.ErrFull
	u.as("alice", "POST", "/v1/jobs", `{"command":["true"]}`)
	u.shows("after", `cloudshare_http_jobs_over_quota_total{kind="tasks"} 1`,
		`cloudshare_http_jobs_over_quota_total{kind="milli_cpu"} 2`, "cloudshare_http_jobs_refused_total 4")
	if text := u.as("operator", "GET", "/metrics", "").Body.String(); strings.Contains(text, "alice") {
		t.Error("a metric names a user")
	}
}

// Sessions are counted until they end, or their token does.
func TestSessionsAreCounted(t *testing.T) {
	u := newUsers(t)
	u.shows("before", "cloudshare_http_sessions 0")
	first := u.session("carol", access.User)
	u.session("dave", access.User)
	u.shows("two", "cloudshare_http_sessions 2")
	if w := u.browse("POST", "/logout", "key="+u.keyOf(first), first); w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	u.shows("one has logged out", "cloudshare_http_sessions 1")
	for _, token := range u.store.List() {
		if token.User == "dave" {
			if err := u.store.Revoke(token.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	u.shows("the other one's token is revoked", "cloudshare_http_sessions 0")
}
