package web

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/cloudshare/cloudshare/api/web/webtest"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// workflow is a fixture: a job split into ten, of which one has failed, and what gathers them; a job waits for its
// failure, and ten thousand for the gathering one, one of which has a name that is too long and hostile.
func workflow() *webtest.Broker {
	b := webtest.New(12, 40)
	w := workflowOf{b, map[uint64]*node.Job{}}
	w.job(600, "split", "succeeded")
	var parts []uint64
	for i := uint64(601); i <= 610; i++ {
		state := "running"
		if i == 603 {
			state = "failed"
		}
		w.job(i, fmt.Sprintf("count part %d", i-600), state)
		w.after(i, jobspec.WhenOK, 600)
		parts = append(parts, i)
	}
	w.job(611, "gather the counts of all parts", "queued")
	w.after(611, jobspec.WhenAny, parts...)
	w.after(611, jobspec.WhenOK, 600)
	w.job(612, "tell of the failure", "queued")
	w.after(612, jobspec.WhenNotOK, 603)
	w.after(612, jobspec.WhenEach, 611)
	for i := uint64(613); i <= 640; i++ {
		w.job(i, hostile, "queued")
		w.after(i, jobspec.WhenOK, 611)
	}
	for _, j := range w.jobs {
		b.Submit(*j)
	}
	d := b.Waits[w.jobs[611].ID]
	d.All = 10_000
	b.Waits[w.jobs[611].ID] = d
	return b
}

type workflowOf struct {
	*webtest.Broker
	jobs map[uint64]*node.Job
}

func (w workflowOf) job(num uint64, name, state string) {
	j := w.Some(num, name, state, map[string]uint32{state: 1})
	w.jobs[num] = &j
}

// after has a job wait for others, as its owner's broker would tell it.
func (w workflowOf) after(num uint64, when jobspec.When, others ...uint64) {
	if w.Waits == nil {
		w.Waits = map[command.JobID]node.Dependencies{}
	}
	j := w.jobs[num]
	for _, o := range others {
		first := w.jobs[o]
		j.Spec.After = append(j.Spec.After, jobspec.Dependency{Job: first.ID, When: when})
		if j.State != fsm.Queued.String() {
			continue
		}
		j.Counts = map[string]uint32{node.Held: 1}
		d := node.Dependency{Job: first.ID, When: when}
		if !first.EndedAt.IsZero() || first.State == "failed" || first.State == "succeeded" {
			d.State = first.State
		}
		its := w.Waits[j.ID]
		its.On = append(its.On, d)
		w.Waits[j.ID] = its
		if d.State == "" {
			of := w.Waits[first.ID]
			of.Waiting, of.All = append(of.Waiting, j.ID), of.All+1
			w.Waits[first.ID] = of
		}
	}
}

// overflowing is an expression: the texts of boxes that leave them, and boxes that lie upon each other.
const overflowing = `(() => {
	const out = [], boxes = [...document.querySelectorAll(".graph .node")].map((a) => [a.id, a.querySelector(".box").getBoundingClientRect(), a]);
	for (const [id, r, a] of boxes) {
		for (const text of a.querySelectorAll("text")) if (text.getBoundingClientRect().right > r.right && !text.closest("[clip-path]")) out.push("the text of " + id);
		for (const [other, o] of boxes) if (id < other && r.left < o.right && o.left < r.right && r.top < o.bottom && o.top < r.bottom) out.push(id + " on " + other);
	}
	for (const wish of document.querySelectorAll(".graph .wish")) {
		const w = wish.getBoundingClientRect();
		for (const [id, r] of boxes) if (r.left < w.right && w.left < r.right && r.top < w.bottom && w.top < r.bottom) out.push("a wish on " + id);
	}
	return out;
})()`

// TestGraphOfJobs: the picture of what waits for what is bounded and legible, by day, by night and on a phone; it opens
// at the page's own job, every other one is a link with a name, and it follows what happens.
func TestGraphOfJobs(t *testing.T) {
	broker := workflow()
	url := serve(t, broker)
	const path = "/jobs/site-002.611"
	b := open(t)
	for _, scheme := range []string{"light", "dark"} {
		b.look(1280, 900, scheme)
		b.visit(url + path)
		b.shoot("graph-" + scheme)
		b.audit("a graph, " + scheme)
		for _, fault := range read[[]string](b, overflowing) {
			t.Errorf("%s: %s", scheme, fault)
		}
	}
	if n := read[int](b, `document.querySelectorAll(".graph .node").length`); n != 24 {
		t.Errorf("%d jobs are drawn", n)
	}
	if text := read[string](b, `document.getElementById("g-site-002.611").textContent`); read[string](b, `document.querySelector(".graph [aria-current]").id`) != "g-site-002.611" {
		t.Errorf("the page's own job is not marked: %s", text)
	}
	b.await("what is not drawn", contains("[id='g-site-002.611']", "9,988 more after")+` && `+contains("#listed", "lists"))
	b.await("the wishes", `["any", "ok", "each"].every((w) => [...document.querySelectorAll(".graph .wish")].some((t) => t.textContent === w))`)
	names, err := tree(b)
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, n := range names {
		if n.Role != nil && string(n.Role.Value) == `"link"` && n.Name != nil && string(n.Name.Value) == `"site-002.603, count part 3, failed, after site-002.600 (ok)"` {
			links++
		}
	}
	if links != 1 {
		t.Errorf("a screen reader is told %d times of the job that failed", links)
	}

	b.look(390, 844, "light")
	b.visit(url + path)
	b.shoot("graph-phone")
	if over := read[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("a phone has to scroll sideways by %d", over)
	}
	b.await("the own job in sight", `(() => {
		const own = document.querySelector(".graph [aria-current]").getBoundingClientRect(), frame = document.querySelector(".graph").parentElement.getBoundingClientRect();
		return own.left >= frame.left && own.right <= frame.right;
	})()`)
	b.await("a connection", dot+` === "yes"`)
	id, err := command.ParseJobID("site-002.605")
	if err == nil {
		err = broker.Cancel(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.await("what has happened", contains("[id='g-site-002.605']", "cancelled"))
	b.do("follow the job that failed", chromedp.Evaluate[chromedp.Void](`document.querySelector("[id='g-site-002.603'] .box").dispatchEvent(new MouseEvent("click", { bubbles: true }))`))
	b.await("its page", `location.pathname === "/jobs/site-002.603"`)
	b.await("what it has waited for", contains(".graph", "split"))
	b.quiet()
}
