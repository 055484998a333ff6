package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// TestPrioritiesAreTheUsers: users change the priority of their own jobs, the operator any of the site's; nobody one of
// another site's through a list.
func TestPrioritiesAreTheUsers(t *testing.T) {
	u := newUsers(t)
	alices, bobs := u.submit("alice").ID, u.submit("bob").ID
	u.refused("alice sets bob's", u.as("alice", "POST", "/v1/jobs/"+bobs+"/priority?priority=9", ""), 403, "not-owner")
	u.refused("alice sets user bob's", u.as("alice", "POST", "/v1/priority?priority=9&user=bob", ""), 403, "not-owner")
	for _, query := range []string{"", "user=", "user=bob&job=" + bobs, "label=k%3Dv&label=k%3Dv", "job=" + bobs + "/3"} {
		u.refused(query, u.as("operator", "POST", "/v1/priority?priority=9&"+query, ""), 400, "invalid-parameter")
	}
	got := u.as("alice", "POST", "/v1/priority?priority=7&job="+bobs+"&job="+alices+"&job=site-1.9&job=site-2.1", "").Body.String()
	if strings.Count(got, ":not-owner") != 1 || strings.Count(got, ":not-found") != 2 || strings.Count(got, `"priority":7`) != 1 {
		t.Errorf("alice: %s", got)
	}
	if a, b := u.fake.jobs[0].Spec.Priority, u.fake.jobs[1].Spec.Priority; a != 7 || b != 0 {
		t.Errorf("alice has changed them to %d and %d", a, b)
	}
	if w := u.as("operator", "POST", "/v1/jobs/"+bobs+"/priority?priority=-3", ""); w.Code != http.StatusAccepted {
		t.Errorf("the operator: %d %s", w.Code, w.Body)
	}
	if w := u.as("bob", "POST", "/v1/priority?priority=4&user=bob", ""); !strings.Contains(w.Body.String(), `"priority":4`) {
		t.Errorf("bob: %d %s", w.Code, w.Body)
	}
	if a, b := u.fake.jobs[0].Spec.Priority, u.fake.jobs[1].Spec.Priority; a != 7 || b != 4 {
		t.Errorf("in the end they are %d and %d", a, b)
	}
}

// TestAuditOfPriorities: who has changed, or wanted to change, the priority of which jobs is recorded.
func TestAuditOfPriorities(t *testing.T) {
	u := recordedUsers(t)
	id := u.submit("alice").ID
	u.as("bob", "POST", "/v1/jobs/"+id+"/priority?priority=9", "")
	u.as("alice", "POST", "/v1/jobs/"+id+"/priority?priority=2", "")
	u.as("operator", "POST", "/v1/priority?priority=3&job="+id+"&job=site-1.9", "")
	u.as("alice", "POST", "/v1/priority?priority=3&user=alice&label=k%3Dv", "")
	for who, want := range map[string]string{
		"bob":      `"action":"POST /v1/jobs/` + id + `/priority","targets":["` + id + `"],"status":403`,
		"alice":    `"action":"POST /v1/jobs/` + id + `/priority","targets":["` + id + `"],"status":202`,
		"operator": `"action":"POST /v1/priority","targets":["` + id + `","site-1.9"],"status":200`,
	} {
		list := u.as("operator", "GET", "/v1/audit?who="+id, "").Body.String()
		if !strings.Contains(list, want) {
			t.Errorf("%s: %s", who, list)
		}
	}
	list := u.as("operator", "GET", "/v1/audit?who=alice", "").Body.String()
	if !strings.Contains(list, `"action":"POST /v1/priority","targets":["alice","k=v"]`) {
		t.Errorf("by user: %s", list)
	}
}

// crowded is a broker of which too many priorities are to change already.
type crowded struct{ *fakeBroker }

func (crowded) SetPriority(_ context.Context, ids []command.JobID, _ int32) []error {
	return slices.Repeat([]error{fmt.Errorf("change the priority: %w: 200000 wait", node.ErrFull)}, len(ids))
}

// TestPriorityWhenFull: where no more can be remembered it is 429, of one of many in its item.
func TestPriorityWhenFull(t *testing.T) {
	f := newFake("site-1")
	s := newServer(crowded{f})
	ask(s, "POST", "/v1/jobs", "application/json", `{"command":["true"]}`)
	w := ask(s, "POST", "/v1/jobs/site-1.1/priority?priority=1", "", "")
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	got := post[wire.Prioritized](t, s, "/v1/priority?priority=1&job=site-1.1")
	if len(got.Items) != 1 || got.Items[0].Problem == nil || got.Items[0].Problem.Status != http.StatusTooManyRequests {
		t.Errorf("%+v", got.Items)
	}
}
