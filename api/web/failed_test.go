package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/web/webtest"
	"github.com/cloudshare/cloudshare/node"
)

// Found by users: of a job with one failed task of 200 neither the list nor the
// first page of its tasks said so.
func TestFailedTasksComeFirst(t *testing.T) {
	b := webtest.New(3, 10)
	b.Submit(b.Some(77, "sweep", "running", map[string]uint32{"succeeded": 150, "running": 49, "failed": 1}))
	b.Log = func(_ context.Context, q node.LogQuery) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(fmt.Sprintf("%s of %d\n<script>bad\x1b[31m\n%s\n3\n4\nlast words\n", q.Stream, q.Task, strings.Repeat("x", 5000)))), nil
	}
	h := newPages(t, b)
	wants(t, "/jobs", get(t, h, "/jobs"), ">1 failed</span>", "151 / 200", `class="fill-failed" x="175" width="6"`)
	for range 3 {
		page := get(t, h, "/jobs/site-002.77")
		wants(t, "job", page, `<h2 id="failed">`, "task 199", "exit 3", "last words", "!<script>", "!stderr of 199", "&lt;script&gt;bad [31m", "!"+strings.Repeat("x", 201))
		if strings.Index(page, "task 199") > strings.Index(page, `id="tasks"`) {
			t.Error("the failed task comes after the others")
		}
	}
	if n := b.Asked.Load(); n != 1 {
		t.Errorf("its output was asked for %d times", n)
	}
	page := get(t, h, "/jobs/site-002.77?state=failed")
	wants(t, "only failed", page, `<th scope="row" class="n">199</th>`, `!<th scope="row" class="n">0</th>`, `aria-current="true">failed 1</a>`, ">running 49</a>", ">all 200</a>")
	wants(t, "no such state", get(t, h, "/jobs/site-002.77?state=nonsense"), `<th scope="row" class="n">0</th>`, "from=50#tasks")
	wants(t, "more", get(t, h, "/jobs/site-002.77?state=succeeded&state=running"), "from=50&amp;state=succeeded&amp;state=running#tasks")
}

// TestFailedTasksAreBounded: a thousand failed tasks do not make a page long, and
// output that cannot be had does not keep it from being shown.
func TestFailedTasksAreBounded(t *testing.T) {
	b := webtest.New(3, 10)
	b.Submit(b.Some(77, "sweep", "failed", map[string]uint32{"succeeded": 9000, "failed": 999, "lost": 1}))
	b.Log = func(context.Context, node.LogQuery) (io.ReadCloser, error) {
		return nil, errors.New("site-003 <does> not answer")
	}
	h := newPages(t, b)
	page := get(t, h, "/jobs/site-002.77")
	wants(t, "job", page, "task 9,000", "task 9,009", "!task 9,010", "All 1,000 that failed or were lost", "state=failed&amp;state=lost#tasks", "cannot be had now", "&lt;does&gt;")
	if n := b.Asked.Load(); n != 3 {
		t.Errorf("asked for %d outputs", n)
	}
	wants(t, "/jobs", get(t, h, "/jobs"), "999 failed, 1 lost")
}

// Found by users: that a site drains was told nowhere.
func TestDrainingSiteHasABadge(t *testing.T) {
	for sites, badges := range map[int]int{5: 0, 6: 1, 29: 2} {
		page := get(t, newPages(t, webtest.New(sites, 3)), "/")
		if n := strings.Count(page, ">draining</span>"); n != badges {
			t.Errorf("%d sites: %d badges, want %d", sites, n, badges)
		}
	}
}

// Found by users: a job of which nothing ran, but six tasks had ended, was just
// queued.
func TestWaitingJobSaysWhatIsDone(t *testing.T) {
	b := webtest.New(3, 10)
	b.Submit(b.Some(77, "sweep", "queued", map[string]uint32{"succeeded": 6, "queued": 54}))
	h := newPages(t, b)
	for _, target := range []string{"/jobs", "/queue", "/jobs/site-002.77"} {
		wants(t, target, get(t, h, target), ">6/60 done, waiting</span>")
	}
	wants(t, "of which none ended", get(t, h, "/jobs"), ">queued</span>")
}
