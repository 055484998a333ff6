package web

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/cloudshare/cloudshare/api/web/webtest"
)

// TestMembers: what another operator does is seen without a reload while a form is filled in; a vote is a click, an
// invitation's token is shown once, and can be copied.
func TestMembers(t *testing.T) {
	broker := webtest.New(5, 3)
	url := serve(t, broker)
	b := open(t)
	for _, width := range []int64{1280, 390} {
		b.look(width, 900, "light")
		b.visit(url + "/members")
		b.audit("the members")
	}
	b.await("a stream", dot+` === "yes"`)
	b.do("fill in", chromedp.Evaluate[chromedp.Void](`document.getElementById("invite-site").value = "lab-2"; window.mark = "not loaded again"`))
	if _, err := broker.Vote(t.Context(), "3", true); err != nil {
		t.Fatal(err)
	}
	b.await("the other's vote", `!document.getElementById("approve-3")`)
	if got := read[string](b, `document.getElementById("invite-site").value + ", " + window.mark`); got != "lab-2, not loaded again" {
		t.Errorf("the form says %q", got)
	}
	b.do("reject", chromedp.Click("#reject-2"))
	b.await("the vote", contains("main", "rejected")+` && !document.getElementById("reject-2")`)
	b.do("approve after all", chromedp.Click("#approve-2"))
	b.await("the decision", contains("main", "Nothing."))

	b.do("invite", chromedp.Evaluate[chromedp.Void](
		`document.getElementById("invite-site").value = "lab-2"; document.getElementById("invite").click()`))
	b.await("the token", contains("#token", webtest.Token))
	b.audit("an invitation")
	b.shoot("invited")
	if !read[bool](b, `!document.querySelector("button[data-copy]").hidden`) {
		t.Error("there is nothing to copy the token by")
	}
	b.do("back", chromedp.Click("#back"))
	b.await("the invitation", contains("main", "lab-2"))
	if strings.Contains(read[string](b, `document.documentElement.outerHTML`), webtest.Token) {
		t.Error("the token is shown again")
	}
	b.shoot("members")
	b.quiet()
}
