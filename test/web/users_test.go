package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestOneFailedIsSeen: one failed task of 1000 is seen in the list of jobs, and
// comes first on the job's page; bars are filled.
func TestOneFailedIsSeen(t *testing.T) {
	url := serveUsers(t).url
	b := open(t)
	for _, width := range []int64{1280, 390} {
		b.look(width, 900, "light")
		b.visit(url + "/jobs")
		b.shoot(fmt.Sprintf("users-jobs-%d", width))
		const row = `document.getElementById("j-site-002.501").closest("tr")`
		if got := read[float64](b, row+`.querySelector(".fill-failed").getBoundingClientRect().width`); got < 3 {
			t.Errorf("%d wide: one failed task of 1000 is %.1f points", width, got)
		}
		if text := read[string](b, row+`.querySelector(".state.bad.sure").textContent`); text != "1 failed" {
			t.Errorf("%d wide: the list says %q", width, text)
		}
		off := read[float64](b, `Math.max(...[...document.querySelectorAll("table.jobs svg.stack")].map((bar) => {
			const parts = [...bar.querySelectorAll("rect:not(.fill-none)")].map((p) => p.getBoundingClientRect()), all = bar.getBoundingClientRect();
			return Math.abs(all.right - parts.at(-1).right) + Math.abs(all.width - parts.reduce((sum, p) => sum + p.width, 0));
		}))`)
		if off > 1 {
			t.Errorf("%d wide: a bar is not filled, by %.1f points", width, off)
		}
		b.visit(url + "/jobs/site-002.502")
		b.shoot(fmt.Sprintf("users-job-%d", width))
		if at, tasks := read[float64](b, `document.querySelector(".failed li").getBoundingClientRect().top`), read[float64](b, `document.getElementById("tasks").getBoundingClientRect().top`); at > tasks {
			t.Errorf("%d wide: what failed is at %.0f, below the tasks at %.0f", width, at, tasks)
		}
		b.audit("a job with a failed task")
		b.do("only failed", chromedp.Click(`#t-failed`))
		b.await("the failed task alone", `document.querySelectorAll("table.tasks tbody tr").length === 1 && `+contains("table.tasks", "exit 3"))
	}
	b.quiet()
}

// TestStatesAreNotColoursAlone: what waits half done says so; the timeline has a
// legend of sites and one of ends, whose forms differ.
func TestStatesAreNotColoursAlone(t *testing.T) {
	url := serveUsers(t).url
	b := open(t)
	b.look(1280, 900, "light")
	b.visit(url + "/jobs/site-002.503")
	if text := read[string](b, `document.querySelector(".head .state").textContent`); text != "6/60 done, waiting" {
		t.Errorf("six of sixty are done, and the page says %q", text)
	}
	b.visit(url + "/timeline")
	unnamed := read[[]string](b, `[...new Set([...document.querySelectorAll(".gantt a rect[class^=series]")].map((r) => r.classList[0]))].filter((c) => !document.querySelector(".legend .key." + c))`)
	if len(unnamed) > 0 {
		t.Errorf("the legend does not name %v", unnamed)
	}
	unnamed = read[[]string](b, `["worked", "runs", "broke", "halted", "crowd"].filter((c) => document.querySelector(".gantt rect." + c) && !document.querySelector(".legend .sample ." + c))`)
	if len(unnamed) > 0 {
		t.Errorf("the legend does not explain %v", unnamed)
	}
	if n := read[int](b, `document.querySelectorAll(".gantt rect.broke").length - document.querySelectorAll(".gantt rect.over").length`); n != 0 {
		t.Errorf("%d that failed have no stripes", n)
	}
	if n := read[int](b, `document.querySelectorAll(".gantt .halted ~ .over").length`); n != 0 {
		t.Errorf("%d that were cancelled look as if they had failed", n)
	}
	b.shoot("users-timeline")
	b.quiet()
}

// TestPhone: drawings over time open at now with their rows' names in sight, and
// tables are cards, none wider than the screen.
func TestPhone(t *testing.T) {
	fed := serveUsers(t)
	url := fed.url
	b := open(t)
	b.look(390, 844, "light")
	for _, path := range []string{"/timeline", "/fairness", "/jobs/site-002.502"} {
		b.visit(url + path)
		const chart = `document.querySelector(".wide.now")`
		if over := read[float64](b, chart+`.scrollWidth - `+chart+`.clientWidth - `+chart+`.scrollLeft`); over > 1 {
			t.Errorf("%s: the drawing opens %.0f points before now", path, over)
		}
		if x := read[float64](b, `document.querySelector(".wide.now .names text").getBoundingClientRect().left`); x < 0 || x > 390 {
			t.Errorf("%s: the names of its rows are at %.0f", path, x)
		}
		b.shoot("users-phone" + read[string](b, `location.pathname.replaceAll("/", "-")`))
	}
	b.visit(url + "/timeline")
	b.await("a stream", dot+` === "yes"`)
	b.do("scroll", chromedp.Evaluate[chromedp.Void](`document.querySelector(".wide.now").scrollLeft = 0; document.querySelector(".gantt").dataset.old = "yes"`))
	fed.submit("another one")
	b.await("a new drawing", `!document.querySelector(".gantt").dataset.old`)
	if at := read[int](b, `document.querySelector(".wide.now").scrollLeft`); at != 0 {
		t.Errorf("a reader who looked at the beginning was taken to %d", at)
	}
	for _, path := range []string{"/", "/fairness", "/queue", "/jobs", "/jobs/site-002.502", "/members"} {
		b.visit(url + path)
		if wide := read[[]string](b, `[...document.querySelectorAll("table.cards tr, table.cards td, table.cards th")].filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.outerHTML.slice(0, 100))`); len(wide) > 0 {
			t.Errorf("%s: %d cells are out of sight, such as %s", path, len(wide), wide[0])
		}
		if n := read[int](b, `document.querySelectorAll("table.cards tbody tr").length`); n == 0 {
			t.Errorf("%s has no cards", path)
		}
		if n := read[int](b, `document.querySelectorAll("table:not(.cards):not(.matrix)").length`); n > 0 {
			t.Errorf("%s: %d tables are no cards", path, n)
		}
	}
	b.quiet()
}

// uncertain is an expression: the states of a page are grey and end with a mark.
const uncertain = `[...document.querySelectorAll("main .state:not(.sure)")].some((e) => e.checkVisibility() && getComputedStyle(e, "::after").content.includes("?"))`

// TestNoContactIsOnEveryPage: without contact with the leader every page says so
// and since when, and states are uncertain; the banner goes when contact is back.
func TestNoContactIsOnEveryPage(t *testing.T) {
	fed := serveUsers(t)
	url := fed.url
	b := open(t)
	b.look(1280, 900, "light")
	for _, path := range []string{"/", "/fairness", "/queue", "/jobs", "/jobs?cursor=10.-", "/jobs/site-002.502", "/timeline", "/events"} {
		fed.regainContact()
		b.visit(url + path)
		b.await("a stream at "+path, dot+` === "yes"`)
		if read[bool](b, uncertain) {
			t.Errorf("%s: states are uncertain though the broker has contact", path)
		}
		fed.loseContact()
		b.await("the banner at "+path, contains(".stale", "no contact with the leader")+` && document.querySelector(".stale time")?.dateTime !== ""`)
		if states := read[int](b, `document.querySelectorAll("main .state:not(.sure, .events .state)").length`); states > 0 && !read[bool](b, uncertain) {
			t.Errorf("%s: states are as certain as ever", path)
		}
		b.shoot("users-stale" + read[string](b, `location.pathname.replaceAll("/", "-")`))
		b.audit("without contact, " + path)
		fed.regainContact()
		b.await("no banner at "+path, `!document.querySelector(".stale") && !`+uncertain)
	}
	b.quiet()
	b.visit(url + "/jobs/site-002.99999") // an error is a page, too; the console says that it is one
	b.await("a stream of an error's page", dot+` === "yes"`)
	fed.loseContact()
	b.await("the banner of an error's page", contains(".stale", "no contact with the leader"))
}

// TestSilentBroker: a page whose broker hangs, or is gone, says so and since when;
// it goes on by itself.
func TestSilentBroker(t *testing.T) {
	fed := start(t)
	site := fed.Sites[2]
	job, err := fed.Sites[0].Submit(t.Context(), testbed.Spec{Command: []string{"sleep", "600"}, Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	b := open(t)
	b.look(1280, 900, "light")
	b.logIn(site)
	const banner = `!document.getElementById("gone").hidden`
	b.visit(site.URL.String() + "/jobs")
	b.await("the job", contains("main", job.ID))
	signal := func(sig syscall.Signal) {
		t.Helper()
		if err := site.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	for _, down := range []struct {
		name string
		end  func()
	}{
		{"hangs", func() { signal(syscall.SIGCONT) }},
		{"is gone", func() {
			if err := fed.Restart(t.Context(), site); err != nil {
				t.Fatal(err)
			}
			b.fillLogin(site, "/jobs") // sessions end with their broker
		}},
	} {
		if read[bool](b, banner+" || "+uncertain) {
			t.Errorf("it does not know of the broker that %s before", down.name)
		}
		if down.name == "hangs" {
			signal(syscall.SIGSTOP)
		} else if err := site.Kill(); err != nil {
			t.Fatal(err)
		}
		b.await("the banner when the broker "+down.name, banner)
		if !read[bool](b, uncertain) || read[string](b, `document.getElementById("gone-since").textContent`) == "" {
			t.Error("its states are as certain as ever, or it does not say since when")
		}
		b.shoot("users-broker-" + down.name)
		b.audit("a page whose broker " + down.name)
		down.end()
		b.await("the page again", `!(`+banner+` || `+uncertain+`)`)
	}
	b.visit(site.URL.String() + "/docs") // it stands still otherwise
	b.await("its stream", dot+` === "yes"`)
	signal(syscall.SIGSTOP)
	b.await("the banner of the reference", banner)
	signal(syscall.SIGCONT)
	b.await("the reference again", `!(`+banner+`)`)
}

// TestBrokerHangsBeforeItsFirstBeat: a page whose stream never says anything says so, too.
func TestBrokerHangsBeforeItsFirstBeat(t *testing.T) {
	fed := start(t)
	proxy := httputil.NewSingleHostReverseProxy(fed.Sites[0].URL)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fed.Sites[0].Authorize(r.Header)
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	b := open(t)
	for _, path := range []string{"/jobs", "/docs"} {
		b.visit(front.URL + path)
		b.await("the banner of "+path, `!document.getElementById("gone").hidden`)
	}
	b.visit("about:blank") // it ends the stream
}

// TestDocs: the reference of the API looks like every other page.
func TestDocs(t *testing.T) {
	fed := start(t)
	url := fed.Sites[0].URL.String()
	b := open(t)
	b.logIn(fed.Sites[0])
	b.visit(url + "/jobs")
	const looks = `[getComputedStyle(document.querySelector("main")).fontFamily, getComputedStyle(document.body).backgroundColor, document.querySelector("header nav").textContent].join()`
	want := read[string](b, looks)
	for _, scheme := range []string{"light", "dark"} {
		b.look(1280, 900, scheme)
		b.visit(url + "/docs")
		b.shoot("docs-" + scheme)
		b.audit("the reference, " + scheme)
	}
	b.look(390, 844, "light")
	b.visit(url + "/docs")
	b.shoot("docs-phone")
	if over := read[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("a phone has to scroll sideways by %d", over)
	}
	if got := read[string](b, looks); got != want {
		t.Errorf("its looks are %s, of other pages %s", got, want)
	}
	if at := read[string](b, `document.querySelector("nav [aria-current]").textContent`); at != "API" {
		t.Errorf("the menu says %q", at)
	}
	if n := read[int](b, `document.querySelectorAll(".operation").length`); n < 20 {
		t.Errorf("%d operations", n)
	}
	b.quiet()
}
