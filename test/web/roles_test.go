package web

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// fields fills in a form's fields and sends it by a button.
func (b *tab) fields(button string, values map[string]string) {
	b.t.Helper()
	script := ""
	for id, value := range values {
		script += fmt.Sprintf(`document.getElementById(%q).value = %q;`, id, value)
	}
	b.do("send by "+button, chromedp.Evaluate[chromedp.Void](script+fmt.Sprintf(`document.getElementById(%q).click()`, button)))
}

// makeToken makes a token on the page of tokens and returns its text, which is shown once.
func (b *tab) makeToken(site *testbed.Site, user, role string) string {
	b.t.Helper()
	b.visit(site.URL.String() + "/tokens")
	b.fields("make", map[string]string{"token-name": user + "'s " + role + " token", "token-of": user, "token-role": role})
	b.await("the token", `!!document.getElementById("token-text")`)
	return read[string](b, `document.getElementById("token-text").textContent`)
}

// switchTo logs out, and in again with another token.
func (b *tab) switchTo(text string) {
	b.t.Helper()
	b.do("log out", chromedp.Evaluate[chromedp.Void](`document.querySelector(".leave").requestSubmit()`))
	b.await("the login page", `location.pathname === "/login" && !!document.getElementById("token")`)
	b.do("log in", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
		`document.getElementById("token").value = %q; document.querySelector("form.login").requestSubmit()`, text)))
	b.await("the first page", `location.pathname === "/" && !!document.getElementById("visitor")`)
}

// everywhere looks at pages on a desk by day and by night, and on a phone.
func (b *tab) everywhere(site *testbed.Site, who string, paths ...string) {
	b.t.Helper()
	for _, path := range paths {
		name := who + strings.ReplaceAll(path, "/", "-")
		b.look(1280, 900, "light")
		b.visit(site.URL.String() + path)
		b.shoot(name)
		b.audit(name)
		b.look(1280, 900, "dark")
		b.audit(name + " by night")
		b.look(390, 844, "light")
		b.shoot(name + "-phone")
		if over := read[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			b.t.Errorf("%s: a phone has to scroll sideways by %d", name, over)
		}
	}
	b.look(1280, 900, "light")
}

// TestRoles: an operator makes tokens, a user has own jobs first and cancels them, a reader is offered nothing; what a
// page does not offer is refused, too; a revoked token ends its session.
func TestRoles(t *testing.T) {
	fed, err := testbed.Start(t.Context(), testbed.Options{Binary: *binary, Dir: t.TempDir(), Sites: 2, Cores: 1})
	if err != nil {
		t.Fatalf("%v (make build makes the broker)", err)
	}
	t.Cleanup(func() {
		if err := fed.Stop(); err != nil {
			t.Error(err)
		}
	})
	site := fed.Sites[0]
	long := testbed.Spec{Name: "the site's", Command: []string{"sleep", "600"}}
	theirs, err := site.Submit(t.Context(), long)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t)
	b.look(1280, 900, "light")
	b.logIn(site)
	tokens := map[string]string{}
	for _, role := range []string{"user", "read-only"} {
		tokens[role] = b.makeToken(site, "alice", role)
		b.shoot("token-" + role)
		b.audit("a new token")
	}
	b.do("back", chromedp.Click("#back"))
	b.await("the list", `location.pathname === "/tokens" && `+contains("main", "alice's read-only token"))
	if page := read[string](b, `document.documentElement.outerHTML + location.href`); strings.Contains(page, strings.Split(tokens["user"], "_")[2]) {
		t.Error("a token's text is shown again")
	}
	b.everywhere(site, "operator", "/tokens", "/users", "/me", "/jobs", "/members", "/jobs/"+theirs.ID)

	b.switchTo(tokens["user"])
	alices := *site
	alices.Read = func(string) ([]byte, error) { return []byte(tokens["user"]), nil }
	long.Name = "alice's"
	own, err := alices.Submit(t.Context(), long)
	if err != nil {
		t.Fatal(err)
	}
	queued := long
	queued.Sites = &testbed.Where{Only: []string{"nowhere"}} // what a site runs for itself is in nobody else's list
	foreign, err := fed.Sites[1].Submit(t.Context(), queued)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err = testbed.Await(ctx, "the other site's job", func() error { // the list shows what is known when it is asked for
		b.visit(site.URL.String() + "/jobs")
		if !read[bool](b, contains("main", foreign.ID)) {
			return errors.New("it is not in the list")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b.await("own jobs", contains("#own-jobs", "Your jobs")+" && "+contains("main", own.ID))
	if strings.Contains(read[string](b, `document.querySelector("main").textContent`), theirs.ID) {
		t.Error("alice is shown another's job")
	}
	b.everywhere(site, "user", "/jobs", "/me", "/tokens", "/timeline", "/members", "/jobs/"+own.ID)
	for path, want := range map[string]int{"/jobs/" + own.ID + "/cancel": 403, "/members/invite": 403, "/tokens": 403} {
		b.do("send a forged form", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`window.answered = 0;
			fetch(%q, {method: "POST", body: new URLSearchParams({site: "x", hours: "1"})}).then(r => { window.answered = r.status; })`, path)))
		b.await("an answer", `window.answered > 0`)
		if got := read[int](b, `window.answered`); got != want {
			t.Errorf("%s without the session's key: %d", path, got)
		}
	}
	b.mu.Lock()
	b.complaints = nil // of these refusals
	b.mu.Unlock()

	b.switchTo(tokens["read-only"])
	b.visit(site.URL.String() + "/jobs/" + own.ID)
	b.await("the job", contains("main", own.ID))
	if read[bool](b, `!!document.querySelector("main form[method=post], #cancel")`) {
		t.Error("a reader is offered to change something")
	}
	b.everywhere(site, "reader", "/me", "/jobs/"+own.ID)
	b.switchTo(tokens["user"])
	b.visit(site.URL.String() + "/jobs/" + own.ID)
	b.do("cancel", chromedp.Click("#cancel"), chromedp.WaitVisible("#confirm"), chromedp.Click("#confirm .danger"))
	b.await("the end", contains(".head .state", "cancelled"))

	b.visit(site.URL.String() + "/tokens")
	b.do("revoke the session's token", chromedp.Click("tr.here .danger"), chromedp.WaitVisible(".confirm:popover-open"))
	b.shoot("revoke")
	b.do("confirm", chromedp.Click(".confirm:popover-open .danger"))
	b.await("the login page", `location.pathname === "/login"`)
	b.quiet()
}
