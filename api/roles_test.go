package api

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/access"
)

var formKey = regexp.MustCompile(`name="key" value="([A-Z2-7]{32})"`)

// keyOf returns what the forms of a session carry.
func (g *guarded) keyOf(cookies []*http.Cookie) string {
	g.t.Helper()
	found := formKey.FindStringSubmatch(g.browse("GET", "/", "", cookies).Body.String())
	if found == nil {
		g.t.Fatal("the page has no form with a key")
	}
	return found[1]
}

// session logs somebody in with a new token.
func (g *guarded) session(user string, role access.Role) []*http.Cookie {
	g.t.Helper()
	text, _, err := g.store.Create(access.Token{Name: user + "'s browser", User: user, Role: role})
	if err != nil {
		g.t.Fatal(err)
	}
	return g.logIn(text, "/").Result().Cookies()
}

// changing are what the pages can change, each with a form that would do it, and who may.
var changing = []struct {
	path, form string
	least      access.Role
}{
	{"/jobs/site-1.1/cancel", "", access.User},
	{"/members/invite", "site=site-9&hours=1", access.Operator},
	{"/members/propose", "what=ban&site=site-9", access.Operator},
	{"/members/invitations/site-9/revoke", "", access.Operator},
	{"/members/motions/1/approve", "", access.Operator},
	{"/members/motions/1/reject", "", access.Operator},
	{"/tokens", "name=x&user=eve&role=operator&for=0s", access.Operator},
	{"/tokens/aaaaaaaa/revoke", "", access.User},
	{"/logout", "", access.ReadOnly},
}

// Whatever a page can change is refused to a form that another session's page made, to one without its session's key,
// and to a role that is too small.
func TestForgedForms(t *testing.T) {
	g := newGuarded(t)
	ask(g.Server, "POST", "/v1/jobs", js, `{"command":["true"]}`, bearer(g.token)...)
	sessions := map[access.Role][]*http.Cookie{}
	for _, role := range []access.Role{access.ReadOnly, access.User, access.Operator} {
		sessions[role] = g.session("alice", role)
	}
	other := g.keyOf(g.session("bob", access.Operator))
	for _, c := range changing {
		for role, cookies := range sessions {
			own := g.keyOf(cookies)
			for name, key := range map[string]string{"without a key": "", "another session's": other, "cut": own[:31], "longer": own + "A"} {
				if w := g.browse("POST", c.path, "key="+key+"&"+c.form, cookies); w.Code != http.StatusForbidden {
					t.Errorf("%s by %s, key %s: %d", c.path, role, name, w.Code)
				}
			}
			if w := g.browse("POST", c.path+"?key="+own, c.form, cookies, "Origin", "http://evil.example"); w.Code != http.StatusForbidden {
				t.Errorf("%s by %s from another origin: %d", c.path, role, w.Code)
			}
			if role.Covers(c.least) {
				continue
			}
			if w := g.browse("POST", c.path, "key="+own+"&"+c.form, cookies); w.Code != http.StatusForbidden {
				t.Errorf("%s by %s: %d", c.path, role, w.Code)
			}
		}
	}
	for role, cookies := range sessions {
		if w := g.browse("GET", "/users", "", cookies); (w.Code == http.StatusOK) != role.Covers(access.Operator) {
			t.Errorf("the page of users by %s: %d", role, w.Code)
		}
	}
	if got := ask(g.Server, "GET", "/v1/jobs/site-1.1", "", "", bearer(g.token)...).Body.String(); strings.Contains(got, "cancelled") {
		t.Errorf("the job was cancelled: %s", got)
	}
}

// A session reads the API and changes nothing by it, whatever page asks.
func TestSessionsOnlyReadTheAPI(t *testing.T) {
	g := newGuarded(t)
	cookies := g.session("alice", access.Operator)
	for _, path := range []string{"/v1/jobs", "/v1/tokens", "/v1/cancel?job=site-1.1"} {
		if w := g.browse("POST", path, `{}`, cookies, "Content-Type", js, "Sec-Fetch-Site", "same-origin"); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// A page says who looks at it, and offers what the role may do.
func TestPagesByRole(t *testing.T) {
	g := newGuarded(t)
	ask(g.Server, "POST", "/v1/jobs", js, `{"command":["sleep"]}`, bearer(g.token)...)
	g.fake.users[1] = "alice"
	for role, want := range map[access.Role]string{access.ReadOnly: "", access.User: "cancel", access.Operator: "cancel invite propose"} {
		cookies, got := g.session("alice", role), ""
		for _, path := range []string{"/", "/jobs/site-1.1", "/members"} {
			page := g.browse("GET", path, "", cookies).Body.String()
			if !strings.Contains(page, `>alice<`) || !strings.Contains(page, `>`+string(role)+`</span>`) || !strings.Contains(page, "Log out") {
				t.Errorf("%s does not say who %s is", path, role)
			}
			for _, id := range []string{"cancel", "invite", "propose"} {
				if strings.Contains(page, `<button id="`+id+`"`) {
					got += " " + id
				}
			}
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s is offered%s, want %s", role, got, want)
		}
	}
}

// Of jobs that are another user's, the timeline tells that something ran, and not what.
func TestTimelineTellsNothingOfOthersJobs(t *testing.T) {
	u := newUsers(t)
	u.fake.users[5] = "alice"
	s := New(Config{Recent: pastFake{time.Now()}, Access: u.store}, u.fake, prometheus.NewRegistry(), zerolog.Nop())
	for who, own := range map[string]bool{"alice": true, "bob": false, "operator": true} {
		page := ask(s, "GET", "/timeline", "", "", bearer(u.tokens[who])...).Body.String()
		if strings.Contains(page, "site-1.5") != own || strings.Contains(page, "another user&#39;s of site-1") == own {
			t.Errorf("%s is shown %s", who, page)
		}
	}
}

// The list of jobs begins with the visitor's own; an operator sees whose a job is, and may ask for one user's.
func TestOwnJobsFirst(t *testing.T) {
	u := newUsers(t)
	for _, who := range []string{"alice", "bob"} {
		u.submit(who)
	}
	u.fake.mu.Lock()
	other := u.fake.jobs[0]
	other.ID.Site = "site-2"
	u.fake.jobs = append(u.fake.jobs, other)
	u.fake.mu.Unlock()
	alice, op := u.session("alice", access.User), u.session("alice", access.Operator)
	for _, c := range []struct {
		path    string
		cookies []*http.Cookie
		order   []string
		not     string
	}{
		{"/jobs", alice, []string{"Your jobs", `id="j-site-1.1"`, "Other sites&#39; jobs", `id="j-site-2.1"`}, "site-1.2"},
		{"/jobs", op, []string{"Your jobs", `id="j-site-1.1"`, "Others&#39; jobs", `id="j-site-1.2"`, ">bob<", `id="j-site-2.1"`}, ""},
		{"/jobs?user=bob", op, []string{`value="bob"`, `id="j-site-1.2"`, ">bob<"}, `id="j-site-1.1"`},
		{"/jobs?user=bob", alice, []string{`id="j-site-1.1"`}, "site-1.2"},
		{"/jobs?site=site-1", alice, []string{`id="j-site-1.1"`}, "site-1.2"},
	} {
		page := u.browse("GET", c.path, "", c.cookies).Body.String()
		if c.not != "" && strings.Contains(page, c.not) {
			t.Errorf("%s shows %s", c.path, c.not)
		}
		at := 0
		for _, part := range c.order {
			next := strings.Index(page[at:], part)
			if next < 0 {
				t.Fatalf("%s: no %s after what comes before it:\n%s", c.path, part, page)
			}
			at += next
		}
	}
}
