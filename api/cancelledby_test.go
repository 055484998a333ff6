package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/access"
)

// told returns the events of a kind that somebody is told.
func (u *users) told(who, kind string) (list []wire.Event) {
	u.t.Helper()
	w := u.as(who, "GET", "/v1/events?from=0&follow=false&kind="+kind, "")
	if w.Code != http.StatusOK {
		u.t.Fatalf("%s: %d %s", who, w.Code, w.Body)
	}
	for line := range strings.Lines(w.Body.String()) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, `"kind"`) {
			var e wire.Event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				u.t.Fatal(err)
			}
			list = append(list, e)
		}
	}
	return list
}

// Events, why and the job say whose it is and who had it cancelled, to its user and the operator alone: they said
// neither, and the user of a job that the operator had ended could not find out.
func TestWhoCancelledIsTold(t *testing.T) {
	u := newUsers(t)
	for name, user := range map[string]string{"ann": "ann", "nobody": ""} {
		text, _, err := u.store.Create(access.Token{Name: name, User: user, Role: access.Operator})
		if err != nil {
			t.Fatal(err)
		}
		u.tokens[name] = text
	}
	u.fake.found(t)
	for i, c := range []struct{ by, want, again string }{
		{"nobody", "the operator", "alice"}, {"ann", "ann, an operator", "nobody"}, {"alice", "alice", "ann"},
	} {
		id := u.submit("alice").ID
		job, err := command.ParseJobID(id)
		if err != nil {
			t.Fatal(err)
		}
		u.fake.apply(t, submitted(job.Num))
		u.as(c.by, "DELETE", "/v1/jobs/"+id, "")
		u.as(c.again, "DELETE", "/v1/jobs/"+id, "") // it has ended
		u.fake.apply(t, &command.Cancel{Job: job, Task: -1})
		for _, who := range []string{"alice", "operator"} {
			ended := u.told(who, "job.ended")
			if len(ended) != i+1 || ended[i].User != "alice" || ended[i].By != c.want {
				t.Errorf("%s is told %+v, want by %s", who, ended, c.want)
			}
			var y wire.Why
			var j wire.Job
			for path, out := range map[string]any{"/v1/jobs/" + id: &j, "/v1/jobs/" + id + "/why": &y} {
				if w := u.as(who, "GET", path, ""); json.Unmarshal(w.Body.Bytes(), out) != nil || w.Code != http.StatusOK {
					t.Fatalf("%s: %d %s", path, w.Code, w.Body)
				}
			}
			if j.CancelledBy != c.want || y.User != "alice" || y.CancelledBy != c.want {
				t.Errorf("%s: the job says %q, why %+v, want by %s", who, j.CancelledBy, y, c.want)
			}
		}
	}
	if list := u.told("bob", "job"); len(list) != 0 {
		t.Errorf("bob is told %+v", list)
	}
}

// A cancellation that was refused, or of some tasks, is nobody's of the job.
func TestRefusedCancellationsAreNobodys(t *testing.T) {
	u := newUsers(t)
	u.fake.found(t)
	job, err := command.ParseJobID(u.submit("alice").ID)
	if err != nil {
		t.Fatal(err)
	}
	u.fake.apply(t, submitted(job.Num))
	u.as("operator", "POST", "/v1/cancel?job="+job.String()+"/0", "")
	u.fake.mu.Lock()
	u.fake.jobs[job.Num-1].State = "cancelled" // by something else: the next one is told that it has ended
	u.fake.mu.Unlock()
	u.as("operator", "DELETE", "/v1/jobs/"+job.String(), "")
	u.fake.apply(t, &command.Cancel{Job: job, Task: -1})
	if ended := u.told("alice", "job.ended"); len(ended) != 1 || ended[0].By != "" || ended[0].User != "alice" {
		t.Errorf("%+v", ended)
	}
}

// An export names users only if that is asked for, and of the jobs alone that who asks may see.
func TestExportWithUsers(t *testing.T) {
	u := newUsersWithPast(t)
	for _, c := range []struct {
		who, query, has, hasNot string
	}{
		{"operator", "", `"job":"site-1.2"`, "bob"},
		{"operator", "?format=csv", "measured_by,entry\n", "bob"},
		{"operator", "?users=true", `"user":"bob","entry":`, ""},
		{"operator", "?format=csv&users=true", "measured_by,user,entry\n", ""},
		{"operator", "?format=csv&users=true", ",alice,", ""},
		{"alice", "?users=true", `"user":"alice"`, "bob"},
		{"bob", "?format=csv&users=true", ",bob,", "alice"},
	} {
		w := u.as(c.who, "GET", "/v1/archive"+c.query, "")
		got := w.Body.String()
		if w.Code != http.StatusOK || !strings.Contains(got, c.has) || c.hasNot != "" && strings.Contains(got, c.hasNot) {
			t.Errorf("%s%s: %d %s", c.who, c.query, w.Code, got)
		}
	}
	for _, query := range []string{"?format=swf&users=true", "?users=maybe"} {
		if w := u.as("operator", "GET", "/v1/archive"+query, ""); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}
