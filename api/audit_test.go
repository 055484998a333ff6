package api

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/access"
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

// What the role of a valid token does not cover is recorded: it was not, though a user who tries what is the operator's
// is what an operator wants to hear of. What looks only is not, and a flood of it is counted as one of other refusals.
func TestARoleThatIsTooSmallIsTold(t *testing.T) {
	u := recordedUsers(t)
	reader, _, err := u.store.Create(access.Token{Name: "dashboard", User: "carol", Role: access.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	u.tokens["carol"] = reader
	u.refused("alice", u.as("alice", "POST", "/v1/drain", "{}"), http.StatusForbidden, "forbidden")
	u.refused("alice", u.as("alice", "GET", "/v1/tokens", ""), http.StatusForbidden, "forbidden")
	u.refused("carol", u.as("carol", "DELETE", "/v1/jobs/site-1.7", ""), http.StatusForbidden, "forbidden")
	for range 3 * recordedRefusals {
		u.as("bob", "DELETE", "/v1/tokens/abcdefgh", "")
	}
	for who, want := range map[string]wire.AuditEntry{
		"alice": {User: "alice", Role: "user", Action: "POST /v1/drain"},
		"carol": {User: "carol", Role: "read-only", Action: "DELETE /v1/jobs/site-1.7", Targets: []string{"site-1.7"}},
	} {
		list := u.audited(who)
		if len(list) != 1 || !strings.HasPrefix(list[0].Why, "forbidden: this needs role ") || list[0].Token == "" {
			t.Fatalf("%s: %+v", who, list)
		}
		want.Time, want.Token, want.Status, want.Why = list[0].Time, list[0].Token, http.StatusForbidden, list[0].Why
		if !reflect.DeepEqual(list[0], want) {
			t.Errorf("%+v, want %+v", list[0], want)
		}
	}
	if list := u.audited("bob"); len(list) != recordedRefusals {
		t.Errorf("%d entries of a flood", len(list))
	}
}
