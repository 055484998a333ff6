package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/internal/sight"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// TestNoticesAreTheUsers: who is told of a job's end is shown to its user and to the operator; other users and other
// sites' brokers do not see it, wherever they look.
func TestNoticesAreTheUsers(t *testing.T) {
	u := newUsers(t)
	const url = "https://hooks.example.org/secret-path"
	var job wire.Accepted
	w := u.as("bob", "POST", "/v1/jobs", `{"command":["true"],"notify":[{"url":"`+url+`"}]}`)
	if err := json.Unmarshal(w.Body.Bytes(), &job); err != nil || w.Code != 202 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for who, sees := range map[string]bool{"bob": true, "operator": true, "alice": false} {
		for _, path := range []string{"/v1/jobs/" + job.ID, "/jobs/" + job.ID, "/v1/jobs/" + job.ID + "/why", "/v1/jobs"} {
			text := u.as(who, "GET", path, "").Body.String()
			found, must := strings.Contains(text, url), sees && strings.Contains(path, job.ID)
			if found && !sees || must && !found {
				t.Errorf("%s asks for %s: %t", who, path, found)
			}
		}
	}
	id, err := command.ParseJobID(job.ID)
	if err != nil {
		t.Fatal(err)
	}
	far := node.WithAsker(t.Context(), node.Asker{Site: "site-9"})
	if got, err := sight.New(u.fake).Why(far, id); err != nil || got.Notices != nil {
		t.Errorf("another site's broker is told why: %+v, %v", got.Notices, err)
	}
	if got, err := sight.New(u.fake).Job(far, id); err != nil || !got.Outline || got.Notices != nil {
		t.Errorf("another site's broker sees %+v, %v", got, err)
	}
}
