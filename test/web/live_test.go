package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// start runs a federation of three sites with one core each.
func start(t *testing.T) *testbed.Federation {
	t.Helper()
	fed, err := testbed.Start(t.Context(), testbed.Options{Binary: *binary, Dir: t.TempDir(), Sites: 3, Cores: 1})
	if err != nil {
		t.Fatalf("%v (make build makes the broker)", err)
	}
	t.Cleanup(func() {
		if err := fed.Stop(); err != nil {
			t.Error(err)
		}
	})
	return fed
}

// logIn takes the browser through the login page of a site.
func (b *tab) logIn(site *testbed.Site) {
	b.t.Helper()
	b.visit(site.URL.String() + "/queue")
	b.fillLogin(site, "/queue")
}

// fillLogin sends the site's token on the login page, which leads to a path.
func (b *tab) fillLogin(site *testbed.Site, next string) {
	b.t.Helper()
	token, err := site.Token()
	if err != nil {
		b.t.Fatal(err)
	}
	b.await("the login page", `location.pathname === "/login" && !!document.getElementById("token")`)
	b.do("log in", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
		`document.getElementById("token").value = %q; document.querySelector("form.login").requestSubmit()`, token)))
	b.await("the page behind the login", fmt.Sprintf(`location.pathname === %q`, next))
}

// TestLoginPage: it looks like every other page, and tells of a wrong token.
func TestLoginPage(t *testing.T) {
	site := start(t).Sites[0]
	b := open(t)
	for _, scheme := range []string{"light", "dark"} {
		b.look(1280, 900, scheme)
		b.visit(site.URL.String() + "/login")
		b.shoot("login-" + scheme)
		b.audit("the login page, " + scheme)
	}
	b.do("send a wrong token", chromedp.Evaluate[chromedp.Void](
		`document.getElementById("token").value = "cst_x"; document.querySelector("form.login").requestSubmit()`))
	b.await("the refusal", contains("#wrong", "mistyped"))
	b.audit("the login page after a wrong token")
	b.logIn(site)
	b.do("log out", chromedp.Evaluate[chromedp.Void](`document.querySelector(".leave").requestSubmit()`))
	b.await("the login page again", `location.pathname === "/login"`)
}

// hostile is a name that a careless page would run.
const hostile = `"><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

// TestLiveFederation: what happens is seen without a reload, a log is followed,
// and a job can be cancelled.
func TestLiveFederation(t *testing.T) {
	fed := start(t)
	site := fed.Sites[0]
	b := open(t)
	b.look(1280, 900, "light")
	b.logIn(site)
	b.visit(site.URL.String() + "/jobs")
	b.do("mark the page", chromedp.Evaluate[chromedp.Void](`window.mark = "not loaded again"`))
	b.await("a connection", `document.documentElement.dataset.live === "yes"`)

	script := `i=0; while [ $i -lt 600 ]; do echo "line $i <b>bold</b>"; i=$((i+1)); sleep 0.2; done`
	job, err := site.Submit(t.Context(), testbed.Spec{
		Name: hostile, Command: []string{"sh", "-c", script}, Count: 5,
		Labels: map[string]string{"team": hostile},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.await("the job", contains("main", job.ID))
	b.await("its tasks running", contains("table.jobs", "running"))
	if read[string](b, `window.mark`) != "not loaded again" || strings.Contains(read[string](b, `document.title`), "owned") {
		t.Error("the page was loaded again, or somebody else's script ran")
	}

	b.visit(site.URL.String() + "/jobs/" + job.ID)
	b.await("the log", contains("pre.log", "line 3 <b>bold</b>"))
	b.await("more of the log", contains("pre.log", "line 12 <b>bold</b>"))
	if n := read[int](b, `document.querySelectorAll("pre.log b, main img, main script").length`); n > 0 {
		t.Errorf("%d elements came out of the log or the name", n)
	}
	b.await("why the others wait", contains("main", "Tasks"))
	b.shoot("live-job")
	b.audit("a job")

	b.do("cancel", chromedp.Click("#cancel"), chromedp.WaitVisible("#confirm"))
	b.shoot("live-confirm")
	b.do("confirm", chromedp.Click("#confirm .danger"))
	b.await("the end", contains(".head .state", "cancelled"))
	b.await("the log's end", contains("#log-state", "ended"))

	for _, path := range []string{"/", "/fairness", "/queue", "/timeline", "/events", "/members", "/jobs"} {
		b.visit(site.URL.String() + path)
		b.await("the dot at "+path, dot+` === "yes"`)
		b.shoot("live" + strings.ReplaceAll(path, "/", "-"))
		b.audit(path)
	}
	b.visit(site.URL.String() + "/events")
	again, err := site.Submit(t.Context(), testbed.Spec{Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	b.await("the events", contains("ol.events", again.ID))
	b.quiet()
}

// TestScrollStays: what a reader of a phone has scrolled to stays there while the
// page is redrawn.
func TestScrollStays(t *testing.T) {
	fed := start(t)
	site := fed.Sites[0]
	submit := func() string {
		t.Helper()
		job, err := site.Submit(t.Context(), testbed.Spec{Command: []string{"true"}, Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		return job.ID
	}
	first := submit()
	b := open(t)
	b.logIn(site)
	b.look(390, 844, "light")
	b.visit(site.URL.String() + "/timeline")
	b.await("a job's attempt", contains(".gantt", first))
	b.do("scroll", chromedp.Evaluate[chromedp.Void](`document.querySelector(".wide").scrollLeft = 90`))
	b.await("the next job's", contains(".gantt", submit()))
	if at := read[int](b, `document.querySelector(".wide").scrollLeft`); at != 90 {
		t.Errorf("the drawing went to %d", at)
	}
	b.quiet()
}

// Found by review: a log that had ended empty said "nothing yet".
func TestEmptyLog(t *testing.T) {
	fed := start(t)
	site := fed.Sites[0]
	job, err := site.Submit(t.Context(), testbed.Spec{Command: []string{"true"}, Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := open(t)
	b.logIn(site)
	b.visit(site.URL.String() + "/jobs/" + job.ID)
	b.await("the log's end", contains("#log-state", "ended"))
	if got := read[string](b, `getComputedStyle(document.querySelector("pre.log"), "::before").content`); got != `"no output"` {
		t.Errorf("an empty log that has ended says %s", got)
	}
}

// dot is an expression: what the dot beside the site's name says.
const dot = `document.documentElement.dataset.live`

// TestDot: the dot says whether what is seen is what is: green on every page
// whose stream is up, that of events too, red when the broker is gone, and green
// once it is back and the page is told of what happens.
func TestDot(t *testing.T) {
	fed := start(t)
	site := fed.Sites[2]
	b := open(t)
	b.logIn(site)
	for _, path := range []string{"/", "/fairness", "/queue", "/jobs", "/timeline", "/events", "/events?kind=job.submitted"} {
		b.visit(site.URL.String() + path)
		b.await("the dot at "+path, dot+` === "yes"`)
		if shown := read[string](b, `getComputedStyle(document.querySelector(".dot")).backgroundColor`); shown == read[string](b, `getComputedStyle(document.querySelector("header")).borderBottomColor`) {
			t.Errorf("%s: the dot is as grey as a line: %s", path, shown)
		}
	}
	if err := site.Kill(); err != nil {
		t.Fatal(err)
	}
	b.await("a red dot", dot+` === "no"`)
	if err := fed.Restart(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	b.fillLogin(site, "/events") // sessions end with their broker
	b.await("a green dot", dot+` === "yes"`)
	job, err := fed.Sites[0].Submit(t.Context(), testbed.Spec{Command: []string{"true"}, Count: 4})
	if err != nil {
		t.Fatal(err)
	}
	b.await("what happens", contains("ol.events", job.ID))
}
