package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
)

// Users see their own quotas, the operator all, and only the operator changes them.
func TestUserQuotasOverTheAPI(t *testing.T) {
	g := newGuarded(t)
	alice := g.create(access.User, time.Time{})
	const limits = `{"tasks":5}`
	g.refused("a user", g.as(alice, "PUT", "/v1/quotas/alice", limits), http.StatusForbidden, "forbidden")
	for _, user := range []string{"*", "%2A", "bob@lab"} {
		w := g.as(g.token, "PUT", "/v1/quotas/"+user, limits)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"tasks":5`) {
			t.Errorf("%s: %d %s", user, w.Code, w.Body)
		}
	}
	for _, bad := range []struct {
		user, body string
		status     int
	}{
		{"Bob", limits, 422},
		{"bob", `{}`, 422},
		{"bob", `{"tasks":-1}`, 422},
		{"bob", `{"cores":1}`, 422},
		{"bob", `{"tasks":`, 400},
	} {
		if w := g.as(g.token, "PUT", "/v1/quotas/"+bad.user, bad.body); w.Code != bad.status {
			t.Errorf("%+v: %d %s", bad, w.Code, w.Body)
		}
	}
	own := decoded[wire.List[wire.UserQuota]](t, g.as(alice, "GET", "/v1/quotas", ""), http.StatusOK)
	if len(own.Items) != 1 || own.Items[0].User != "alice" || own.Items[0].Tasks != 3 || own.Items[0].Limits.Tasks != 5 {
		t.Errorf("alice sees %+v", own.Items)
	}
	all := decoded[wire.List[wire.UserQuota]](t, g.as(g.token, "GET", "/v1/quotas", ""), http.StatusOK)
	if len(all.Items) != 2 {
		t.Errorf("the operator sees %+v", all.Items)
	}
}

// A name that nothing has yet may be mistyped: it is taken, and told.
func TestQuotasOfNobodyAreTold(t *testing.T) {
	g := newGuarded(t)
	if _, _, err := g.store.Create(access.Token{Name: "d", User: "dan", Role: access.User}); err != nil {
		t.Fatal(err)
	}
	for user, warned := range map[string]bool{"alice": false, "*": false, "dan": false, "alcie": true} {
		q := decoded[wire.UserQuota](t, g.as(g.token, "PUT", "/v1/quotas/"+user, `{"tasks":5}`), http.StatusOK)
		if warned != strings.Contains(q.Note, "user "+user+" yet: check the name") || !warned && q.Note != "" {
			t.Errorf("%s: %q", user, q.Note)
		}
	}
}

// A job that its user's quotas can never hold is forbidden, another one may come back.
func TestUserQuotaProblem(t *testing.T) {
	e := &node.UserQuotaError{User: "alice", Use: fsm.Use{Quota: node.UserTasks, Used: 9, Limit: 10}, Need: 2}
	if p := problem.Of(e); p.Status != http.StatusTooManyRequests || p.RetryAfter == 0 || p.Quota != "tasks" ||
		!strings.HasSuffix(p.Type, "quota-exceeded") || *p.Need != 2 {
		t.Errorf("%+v", p)
	}
	e.Need = 11
	if p := problem.Of(e); p.Status != http.StatusForbidden || p.RetryAfter != 0 {
		t.Errorf("%+v", p)
	}
}
