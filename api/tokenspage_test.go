package api

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/access"
)

// An operator makes a token on the page: its text is in the answer, and nowhere else.
func TestTokenIsShownOnce(t *testing.T) {
	g := newGuarded(t)
	cookies := g.session("root", access.Operator)
	key := "key=" + g.keyOf(cookies)
	w := g.browse("POST", "/tokens", key+"&name=a+laptop&user=alice&role=user&for=24h0m0s", cookies)
	text := regexp.MustCompile(`cst_\w+`).FindString(w.Body.String())
	made, err := g.store.Find(text)
	if w.Code != http.StatusCreated || err != nil ||
		made.User != "alice" || made.Role != access.User || made.Expires.IsZero() {
		t.Fatalf("%d %+v %v %s", w.Code, made, err, w.Body)
	}
	if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Location") != "" {
		t.Errorf("%v", w.Header())
	}
	page := g.browse("GET", "/tokens", "", cookies).Body.String()
	if !strings.Contains(page, made.ID) || strings.Contains(page, strings.Split(text, "_")[2]) {
		t.Errorf("the list: %s", page)
	}
	for _, bad := range []string{
		"&name=x&user=A+B&role=user&for=24h0m0s", "&name=&user=a&role=user&for=0s", "&name=x&user=&role=user&for=0s",
		"&name=x&user=a&role=root&for=0s", "&name=x&user=a&role=user&for=1h", "&name=x&user=a&role=user",
	} {
		if w = g.browse("POST", "/tokens", key+bad, cookies); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
}

// Users see and revoke their own tokens, but none that may do more than the one they came with; they make none.
func TestTokensOfAUser(t *testing.T) {
	g := newGuarded(t)
	ids := map[string]string{}
	for _, wanted := range []access.Token{
		{Name: "alices", User: "alice", Role: access.User},
		{Name: "alices-op", User: "alice", Role: access.Operator},
		{Name: "bobs", User: "bob", Role: access.User},
	} {
		_, made, err := g.store.Create(wanted)
		if err != nil {
			t.Fatal(err)
		}
		ids[made.Name] = made.ID
	}
	alice, reader := g.session("alice", access.User), g.session("alice", access.ReadOnly)
	page := g.browse("GET", "/tokens", "", alice).Body.String()
	for name, want := range map[string]bool{"alices": true, "alices-op": true, "bobs": false} {
		if strings.Contains(page, ids[name]) != want {
			t.Errorf("%s is shown: %v", name, !want)
		}
	}
	if strings.Contains(page, "Make a token") || strings.Contains(page, `id="revoke-`+ids["alices-op"]) ||
		strings.Contains(g.browse("GET", "/tokens", "", reader).Body.String(), `id="revoke-`) {
		t.Error("more is offered than is allowed")
	}
	for _, c := range []struct {
		cookies []*http.Cookie
		name    string
		want    int
	}{
		{alice, "bobs", 404}, {alice, "alices-op", 404}, {reader, "alices", 403}, {alice, "alices", 303}, {alice, "alices", 404},
	} {
		if w := g.browse("POST", "/tokens/"+ids[c.name]+"/revoke", "key="+g.keyOf(c.cookies), c.cookies); w.Code != c.want {
			t.Errorf("revoke %s: %d, want %d", c.name, w.Code, c.want)
		}
	}
	own := g.store.List()[len(g.store.List())-2].ID // of alice's session
	if w := g.browse("POST", "/tokens/"+own+"/revoke", "key="+g.keyOf(alice), alice); w.Code != http.StatusSeeOther {
		t.Errorf("the session's own: %d %s", w.Code, w.Body)
	}
	if w := g.browse("GET", "/tokens", "", alice); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/login") {
		t.Errorf("afterwards: %d", w.Code)
	}
}

// The page of oneself tells of one's own jobs and requests alone, and of the use as far as the archive knows.
func TestOwnPage(t *testing.T) {
	u := newUsers(t)
	u.submit("alice")
	u.submit("bob")
	u.submit("bob")
	for who, waiting := range map[string]string{"alice": "1", "bob": "2"} {
		page := u.browse("GET", "/me", "", u.session(who, access.User)).Body.String()
		for _, part := range []string{"<dt>Jobs waiting</dt><dd>" + waiting + "</dd>", "keeps no archive", "keeps no record", who + "&#39;s browser"} {
			if !strings.Contains(page, part) {
				t.Errorf("%s: no %q in %s", who, part, page)
			}
		}
	}
	page := u.browse("GET", "/users", "", u.session("root", access.Operator)).Body.String()
	for _, part := range []string{`href="/jobs?user=alice"`, `data-l="Waiting">2</td>`, `href="/tokens?user=bob">2</a>`} {
		if !strings.Contains(page, part) {
			t.Errorf("the users: no %q in %s", part, page)
		}
	}
}
