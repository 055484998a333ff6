package api

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// users is a guarded server with tokens of two users, a reader without one, and the operator, by name.
type users struct {
	*guarded
	tokens map[string]string
}

func newUsers(t *testing.T) *users {
	t.Helper()
	g := newGuarded(t)
	u := &users{g, map[string]string{"operator": g.token}}
	for _, name := range []string{"alice", "bob"} {
		text, _, err := g.store.Create(access.Token{Name: name, User: name, Role: access.User})
		if err != nil {
			t.Fatal(err)
		}
		u.tokens[name] = text
	}
	return u
}

// as asks with somebody's token.
func (u *users) as(who, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	return ask(u.Server, method, path, js, body, append(headers, "Authorization", "Bearer "+u.tokens[who])...)
}

// submit has somebody submit a job.
func (u *users) submit(who string, headers ...string) wire.Accepted {
	u.t.Helper()
	var out wire.Accepted
	w := u.as(who, "POST", "/v1/jobs", `{"command":["secret-of-`+who+`"],"labels":{"k":"v"}}`, headers...)
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 202 {
		u.t.Fatalf("%s: %d %s", who, w.Code, w.Body)
	}
	return out
}

// listed are the ids that somebody is shown.
func (u *users) listed(who, query string) string {
	u.t.Helper()
	var out wire.List[wire.Job]
	w := u.as(who, "GET", "/v1/jobs?"+query, "")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 {
		u.t.Fatalf("%s: %d %s", who, w.Code, w.Body)
	}
	ids := ""
	for _, j := range out.Items {
		ids += j.ID + " "
	}
	return ids
}

// Of a site's users each sees and ends their own jobs, and the operator all of them.
func TestUsersSeeTheirOwn(t *testing.T) {
	u := newUsers(t)
	alices, bobs := u.submit("alice").ID, u.submit("bob").ID
	for _, path := range []string{"", "/tasks", "/logs", "/logs?all=true", "/kept?tasks=0", "/why", "/graph"} {
		u.refused("bob's"+path, u.as("alice", "GET", "/v1/jobs/"+bobs+path, ""), 403, "not-owner")
		for _, who := range []string{"bob", "operator"} {
			if w := u.as(who, "GET", "/v1/jobs/"+bobs+path, ""); w.Code != 200 {
				t.Errorf("%s asks for %s: %d %s", who, path, w.Code, w.Body)
			}
		}
	}
	if w := u.as("alice", "GET", "/jobs/"+bobs, ""); w.Code != 403 || strings.Contains(w.Body.String(), "secret-of-bob") {
		t.Errorf("bob's page: %d %s", w.Code, w.Body)
	}
	u.refused("hold", u.as("alice", "POST", "/v1/jobs/"+bobs+"/hold", ""), 403, "not-owner")
	u.refused("rerun", u.as("alice", "POST", "/v1/jobs/"+bobs+"/rerun", ""), 403, "not-owner")
	u.refused("cancel", u.as("alice", "DELETE", "/v1/jobs/"+bobs, ""), 403, "not-owner")
	w := u.as("alice", "POST", "/v1/cancel?job="+bobs+"&job="+alices+"&job=site-1.9", "")
	if got := w.Body.String(); strings.Count(got, ":not-owner") != 1 || strings.Count(got, ":not-found") != 1 ||
		strings.Count(got, `"state":"cancelled"`) != 1 {
		t.Errorf("cancel many: %s", got)
	}
	for who, want := range map[string]string{"alice": alices + " ", "bob": bobs + " ", "operator": alices + " " + bobs + " "} {
		for _, query := range []string{"", "label=k%3Dv"} {
			if got := u.listed(who, query); got != want {
				t.Errorf("%s lists %q by %q, want %q", who, got, query, want)
			}
		}
	}
	if w := u.as("bob", "GET", "/v1/jobs/"+bobs, ""); !strings.Contains(w.Body.String(), `"user":"bob"`) {
		t.Errorf("it is nobody's: %s", w.Body)
	}
	if w := u.as("alice", "GET", "/v1/wait?job="+bobs+"&wait=1m", ""); !strings.Contains(w.Body.String(), ":not-owner") {
		t.Errorf("wait: %s", w.Body)
	}
}

// By user the operator finds anybody's jobs, users none but their own; names are this site's.
func TestJobsOfAUser(t *testing.T) {
	u := newUsers(t)
	alices, bobs := u.submit("alice").ID, u.submit("bob").ID
	for _, c := range []struct{ who, user, want string }{
		{"operator", "alice", alices + " "},
		{"operator", "bob", bobs + " "},
		{"operator", "nobody", ""},
		{"alice", "alice", alices + " "},
		{"alice", "bob", ""},
	} {
		for _, site := range []string{"", "&site=site-1"} {
			if got := u.listed(c.who, "user="+c.user+site); got != c.want {
				t.Errorf("%s finds %q of %s", c.who, got, c.user)
			}
		}
	}
	for _, query := range []string{"user=Bob", "user=bob&site=site-2", "user=*"} {
		u.refused(query, u.as("operator", "GET", "/v1/jobs?"+query, ""), 400, "invalid-parameter")
	}
}

// All open jobs of a user are cancelled at once: by the user alone and the operator, and none beside them.
func TestCancelAllJobsOfAUser(t *testing.T) {
	u := newUsers(t)
	u.submit("bob")
	u.submit("alice")
	u.refused("alice cancels bob's", u.as("alice", "POST", "/v1/cancel?user=bob", ""), 403, "not-owner")
	for _, query := range []string{"user=", "user=*", "user=Bob", "user=bob&job=site-1.1", "", "user=bob&label=k%3Dv&label=k%3Dv"} {
		u.refused(query, u.as("operator", "POST", "/v1/cancel?"+query, ""), 400, "invalid-parameter")
	}
	for _, c := range []struct{ who, query, want string }{
		{"operator", "user=nobody", ""},
		{"alice", "user=alice&label=k%3Dv", "site-1.2 "},
		{"bob", "user=bob", "site-1.1 "},
		{"operator", "user=bob", "site-1.1 "},
	} {
		got := ""
		w := u.as(c.who, "POST", "/v1/cancel?"+c.query, "")
		var out wire.Cancelled
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 {
			t.Fatalf("%s by %s: %d %s", c.who, c.query, w.Code, w.Body)
		}
		for _, item := range out.Items {
			got += item.Job + " "
		}
		if got != c.want {
			t.Errorf("%s by %s: %q", c.who, c.query, got)
		}
	}
}

// Of another site's job a broker shows the outline, whoever asks, and no filter tells more.
func TestOtherSitesJobsAreOutlines(t *testing.T) {
	u := newUsers(t)
	u.fake.jobs = []node.Job{{
		ID: command.JobID{Site: "site-2", Num: 1}, State: "queued", Counts: map[string]uint32{"queued": 3},
		SubmittedAt: time.UnixMilli(1),
	}}
	spec := &u.fake.jobs[0].Spec
	spec.Name, spec.Command, spec.Env = "secret", []string{"secret"}, map[string]string{"A": "secret"}
	spec.Image, spec.Labels, spec.Sites.Only = "secret", map[string]string{"k": "v"}, []string{"secret"}
	spec.Count, spec.Resources.CPU = 3, 5
	for _, who := range []string{"alice", "operator"} {
		w := u.as(who, "GET", "/v1/jobs", "")
		if got := w.Body.String(); strings.Contains(got, "secret") || !strings.Contains(got, `"outline":true`) ||
			!strings.Contains(got, `"cpu":5`) || !strings.Contains(got, `"count":3`) {
			t.Errorf("%s is shown %s", who, got)
		}
		if got := u.listed(who, "label=k%3Dv") + u.listed(who, "name=secret"); got != "" {
			t.Errorf("%s finds %s by what is not shown", who, got)
		}
	}
}

// Events of jobs are told to those who may see the jobs.
func TestEventsAreTheirUsers(t *testing.T) {
	u := newUsers(t)
	u.fake.found(t)
	for num, who := range []string{"alice", "bob"} {
		u.fake.users[uint64(num+1)] = who
		u.fake.apply(t, &command.Submit{Jobs: []command.JobSpec{{
			Num: uint64(num + 1), Count: 1, Need: command.Resources{MilliCPU: 1000}, MaxAttempts: 1,
		}}})
	}
	for who, want := range map[string][2]bool{"alice": {true, false}, "bob": {false, true}, "operator": {true, true}} {
		got := u.as(who, "GET", "/v1/events?from=0&follow=false&kind=job.submitted", "").Body.String()
		if has := [2]bool{strings.Contains(got, "site-1.1"), strings.Contains(got, "site-1.2")}; has != want {
			t.Errorf("%s is told %s", who, got)
		}
	}
}
