package web_test

import (
	"testing"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/api/web/webtest"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/archive"
)

// TestPageOfAPreparedTaskAsksAgain: what is done before a task starts changes without a word of the log.
func TestPageOfAPreparedTaskAsksAgain(t *testing.T) {
	b := webtest.New(5, 60)
	j := b.Some(500, "staging", "assigned", map[string]uint32{"assigned": 1})
	for reason, again := range map[string]string{"staging 3 of 7 files": "", "": "!"} {
		j.Reason = reason
		b.Submit(j)
		target := "/jobs/" + j.ID.String()
		wants(t, target, get(t, newPages(t, b), target), again+`hx-trigger="load delay:2s"`, again+"staging 3 of 7 files</td>")
		j = b.Some(501, "starting", "assigned", map[string]uint32{"assigned": 1})
	}
}

// TestJobSaysWhatItUsed: a job's page has what its attempts have used of what they took, each task's row that of its
// own, and neither a word of what is not known.
func TestJobSaysWhatItUsed(t *testing.T) {
	b := webtest.New(5, 60)
	j := b.Some(500, "used", "succeeded", map[string]uint32{"succeeded": 2})
	j.Spec.Resources.CPU, j.Spec.Resources.Memory = 2, 100
	b.Submit(j)
	target := "/jobs/" + j.ID.String()
	cfg := webtest.Config(b)
	page := get(t, webtest.Serve(web.New(cfg)), target)
	wants(t, target, page, `<h2 id="usage-title">What it has used`,
		"75.0 % of its cores: 1 h 30 min, 6 min 40 s of it in the kernel",
		"512.0 MiB at most, 50.0 % of the 1,024 MiB that a task may use", "1.5 KiB in, 5.0 GiB out", "cgroup: 1",
		"unknown: 1 (lost, or in Kubernetes without a watchdog", "processor 21 s, 35.0 %",
		"memory 40.0 MiB, 40.0 %; 1.5 KiB in; 3.0 MiB out; by cgroup")
	part := ask(webtest.Serve(web.New(cfg)), "GET", target, "HX-Request", "true").Body.String()
	wants(t, "a part", part, "memory 40.0 MiB", "!What it has used")

	cfg.Usages = webtest.Usages{Used: &archive.Usage{
		Attempts: 1, Sources: map[command.MeasureSource]uint64{command.MeasuredRusage: 1},
		Gaps: []archive.Gap{{Reason: "<away>"}},
	}}
	wants(t, "nothing known", get(t, webtest.Serve(web.New(cfg)), target), "<dd>not known</dd>", "rusage: 1", "&lt;away&gt;")
	cfg.Usages = webtest.Usages{Used: &archive.Usage{}}
	wants(t, "nothing archived", get(t, webtest.Serve(web.New(cfg)), target), "!What it has used")
	cfg.Usages = webtest.Usages{Err: node.ErrNotFound}
	wants(t, "no answer", get(t, webtest.Serve(web.New(cfg)), target), "What it has used", `<p class="empty">Not Found.`)
	cfg.Usages = nil
	wants(t, "no archive", get(t, webtest.Serve(web.New(cfg)), target), "!What it has used")
	waiting := b.Some(501, "waiting", "queued", map[string]uint32{"queued": 2})
	b.Submit(waiting)
	cfg.Usages = webtest.Usages{}
	wants(t, "waiting", get(t, webtest.Serve(web.New(cfg)), "/jobs/"+waiting.ID.String()), "!What it has used")
}
