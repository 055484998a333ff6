package web_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/web/webtest"
)

// send sends a form of the pages themselves.
func send(h http.Handler, target string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The page shows who the members are, what is to be decided and for whom that waits.
func TestMembersPage(t *testing.T) {
	b := webtest.New(5, 3)
	h := newPages(t, b)
	wants(t, "/members", get(t, h, "/members"), ">decides<", ">away<", ">expelled<", "What 2 of site-001, site-002, site-003",
		`title="`+b.MemberList[0].Key+`"`, `data-copy="`+b.MemberList[0].Key+`"`, "admit guest", "compare it",
		"policy: SIMPL_DIRECT → FAIRSHARE", "retain_jobs: 100000 → 5", "one of site-001, site-003", `id="approve-2"`, `id="reject-3"`,
		`id="revoke-2"`, "!id=\"revoke-1\"", ">claimed<", ">admitted<", ">passed<", `aria-current="page">Members`)
	for _, m := range b.MotionList[1:] {
		if m.Key != "" {
			wants(t, "the whole key", get(t, h, "/members"), `class="whole">`+m.Key)
		}
	}
	b.MemberList[0].Deciding = false
	wants(t, "no vote", get(t, h, "/members"), "no vote", "!id=\"approve-2\"", "!id=\"revoke-2\"")
}

// A vote is cast with the button of its motion, and shown then.
func TestVotes(t *testing.T) {
	b := webtest.New(5, 3)
	h := newPages(t, b)
	if w := send(h, "/members/motions/2/approve", nil); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/members" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	if w := send(h, "/members/motions/3/reject", nil); w.Code != http.StatusSeeOther {
		t.Fatalf("%d", w.Code)
	}
	wants(t, "after the votes", get(t, h, "/members"), "!approve-2", "<small>rejected</small>", `id="approve-3"`, `!id="reject-3"`)
	for target, want := range map[string]int{
		"/members/motions/1/approve": 409, "/members/motions/99/approve": 404, "/members/motions/x/reject": 404,
	} {
		if w := send(h, target, nil); w.Code != want {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

// The token is shown by the answer alone.
func TestInvitationIsShownOnce(t *testing.T) {
	h := newPages(t, webtest.New(5, 3))
	w := send(h, "/members/invite", url.Values{"site": {"lab-2"}, "hours": {"48"}, "vote": {"yes"}})
	if w.Code != http.StatusCreated || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	wants(t, "invited", w.Body.String(), webtest.Token, "cloudshare broker --site lab-2 --data-dir DIR --join @FILE", "2026-05-06 10:30:00 UTC",
		"one of site-002, site-003", "10.0.0.1:7701", `aria-current="page">Members`, "!hx-get")
	wants(t, "/members", get(t, h, "/members"), "!"+webtest.Token, ">lab-2<")
	if w = send(h, "/members/invitations/lab-2/revoke", nil); w.Code != http.StatusSeeOther {
		t.Errorf("%d", w.Code)
	}
	if w = send(h, "/members/invitations/lab-2/revoke", nil); w.Code != http.StatusNotFound {
		t.Errorf("revoked again: %d", w.Code)
	}
	for _, c := range []struct{ site, hours, want string }{
		{"", "24", "site: "}, {"LAB", "24", "site: "}, {"lab-9", "", "hours: "}, {"lab-9", "0", "hours: "}, {"lab-9", "721", "hours: "},
	} {
		w = send(h, "/members/invite", url.Values{"site": {c.site}, "hours": {c.hours}})
		if w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", c, w.Code)
		}
		wants(t, c.site, w.Body.String(), c.want, "!"+webtest.Token)
	}
	if w = send(h, "/members/invite", url.Values{"site": {"site-002"}, "hours": {"1"}}); w.Code != http.StatusConflict {
		t.Errorf("a member: %d", w.Code)
	}
}

// What the form proposes is to be decided then.
func TestProposals(t *testing.T) {
	h := newPages(t, webtest.New(5, 3))
	for what, want := range map[string]string{
		"ban": "ban site-003", "unban": "unban site-003", "elector": "give site-003 a vote", "no-elector": "take the vote of site-003",
	} {
		if w := send(h, "/members/propose", url.Values{"what": {what}, "site": {"site-003"}}); w.Code != http.StatusSeeOther {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
		wants(t, what, get(t, h, "/members"), want)
	}
	for _, form := range []url.Values{{"what": {"forget"}, "site": {"site-003"}}, {"what": {"ban"}}, {"what": {"ban"}, "site": {"<b>"}}} {
		if w := send(h, "/members/propose", form); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", form, w.Code)
		}
	}
}

var changes = map[string]url.Values{
	"/members/invite":                   {"site": {"lab-2"}, "hours": {"24"}},
	"/members/propose":                  {"what": {"ban"}, "site": {"site-003"}},
	"/members/invitations/guest/revoke": nil,
	"/members/motions/2/approve":        nil,
	"/members/motions/2/reject":         nil,
}

// A page of another origin changes nothing, and neither does a form while the state is not known.
func TestNobodyElseChangesMembers(t *testing.T) {
	b := webtest.New(5, 3)
	h := newPages(t, b)
	before := get(t, h, "/members")
	for target, form := range changes {
		if w := send(h, target, form, "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	unknown := errors.New("the state is not known yet")
	b.Outdated.Store(&unknown)
	for target, form := range changes {
		if w := send(h, target, form); w.Code != http.StatusInternalServerError {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	if w := ask(h, "GET", "/members"); w.Code != http.StatusInternalServerError {
		t.Errorf("/members: %d", w.Code)
	}
	b.Outdated.Store(nil)
	if get(t, h, "/members") != before {
		t.Error("something has changed")
	}
}

// The page is long only by what is pending: of what was decided it shows the latest.
func TestManyDecisions(t *testing.T) {
	b := webtest.New(5, 3)
	for range 30 {
		m := b.MotionList[0]
		m.Number, m.Kind, m.Ended = uint64(len(b.MotionList)+1), "ban", b.Now.Add(time.Minute)
		b.MotionList = append(b.MotionList, m)
	}
	page := get(t, newPages(t, b), "/members")
	wants(t, "/members", page, "11 older ones", ">33<", "!>13</th>", ">14</th>")
}
