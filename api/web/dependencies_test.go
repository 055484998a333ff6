package web_test

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/web/webtest"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// TestWhatAJobWaitsFor: lists and the job's page say what a held job waits for, with links before and behind it, also
// to one that is no longer kept.
func TestWhatAJobWaitsFor(t *testing.T) {
	b := webtest.New(3, 10)
	id := func(num uint64) command.JobID { return command.JobID{Site: "site-002", Num: num} }
	first := b.Some(76, "split", "running", map[string]uint32{"running": 1})
	held := b.Some(77, "merge", "queued", map[string]uint32{node.Held: 3})
	held.Reason = "waits for site-002.76 to succeed"
	held.Spec.After = []jobspec.Dependency{{Job: id(76)}, {Job: id(5), When: jobspec.WhenAny}}
	b.Submit(first)
	b.Submit(held)
	b.Waits = map[command.JobID]node.Dependencies{
		id(76): {Waiting: []command.JobID{id(77)}, All: 4},
		id(77): {On: []node.Dependency{{Job: id(76)}, {Job: id(5), When: jobspec.WhenAny, State: "failed"}}},
	}
	h := newPages(t, b)
	wants(t, "/jobs", get(t, h, "/jobs"), "waits for site-002.76 to succeed")
	wants(t, "held", get(t, h, "/jobs/site-002.77"), "Waits for", `href="/jobs/site-002.76"`, "must succeed", "split",
		`href="/jobs/site-002.5"`, ">failed<", "must end", "!Awaited by", "3 held")
	between := b.Some(78, "parallel", "running", map[string]uint32{"running": 1, node.Held: 3})
	between.Spec.After = []jobspec.Dependency{{Job: id(5), When: jobspec.WhenAny}}
	b.Submit(between)
	wants(t, "held between its tasks", get(t, h, "/jobs/site-002.78"), "Waited for", "!Waits for", "3 held")
	wants(t, "first", get(t, h, "/jobs/site-002.76"), "Awaited by", `href="/jobs/site-002.77"`, "merge", "3 more wait", "!Waits for")
}

// TestGraphOnThePage: the picture has the jobs around the page's, also those that are no neighbours, each once and with
// a link; a job without any has no picture.
func TestGraphOnThePage(t *testing.T) {
	b := webtest.New(3, 10)
	id := func(num uint64) command.JobID { return command.JobID{Site: "site-002", Num: num} }
	b.Waits = map[command.JobID]node.Dependencies{}
	for num := uint64(80); num < 84; num++ {
		j := b.Some(num, "link", "queued", map[string]uint32{node.Held: 1})
		if num == 80 {
			j = b.Some(num, "<first>", "running", map[string]uint32{"running": 1})
		} else {
			j.Spec.After = []jobspec.Dependency{{Job: id(num - 1), When: jobspec.WhenAny}}
			b.Waits[id(num)] = node.Dependencies{On: []node.Dependency{{Job: id(num - 1), When: jobspec.WhenAny}}}
			before := b.Waits[id(num-1)]
			before.Waiting, before.All = []command.JobID{id(num)}, 1
			b.Waits[id(num-1)] = before
		}
		b.Submit(j)
	}
	last := b.Waits[id(83)]
	last.All = 10_000
	b.Waits[id(83)] = last
	h := newPages(t, b)
	page := get(t, h, "/jobs/site-002.82")
	wants(t, "a chain", page, "Jobs around it", `role="group"`, `id="g-site-002.80" href="/jobs/site-002.80"`, `id="g-site-002.83"`,
		"&lt;first&gt;", "!<first>", "site-002.80 · running", "site-002.81 · held", `aria-current="page"`, "10,000 more after", "And 10,000 more",
		"site-002.82 after site-002.81, which must end")
	if n := strings.Count(page, `class="node`); n != 4 {
		t.Errorf("%d boxes", n)
	}
	wants(t, "a job of its own", get(t, h, "/jobs/site-002.1"), "!Jobs around it", "!graph-box")
}
