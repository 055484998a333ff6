package web_test

import (
	"testing"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/api/web/webtest"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// leaving is a job of two tasks that are to leave files.
func leaving(b *webtest.Broker) node.Job {
	j := b.Some(500, "left", "succeeded", map[string]uint32{"succeeded": 2})
	j.Spec.Outputs = jobspec.Outputs{Paths: []string{"out/*"}, Optional: []string{"log"}}
	j.Spec.Inputs = []jobspec.Input{{Path: "ref.fa", From: jobspec.FromURL, URL: "https://data.example.org/ref.fa"}}
	b.Submit(j)
	return j
}

// TestFilesOfAJob are listed with links that no path leads astray, and with the archive; inputs are told.
func TestFilesOfAJob(t *testing.T) {
	b := webtest.New(5, 60)
	target := "/jobs/" + leaving(b).ID.String()
	b.Left = []web.ResultFile{{Task: 0, Path: "out/a b?c#%.csv", Size: 1536}, {Task: 1, Path: `out/"<script>`, Size: 1}}
	h := newPages(t, b)
	wants(t, target, get(t, h, target),
		`href="/v1`+target+`/files/out%2Fa%20b%3Fc%23%25.csv?task=0"`, ">out/a b?c#%.csv<", "1.5 KiB", "1 byte<", "!<script>&#34;", "!\"<script>",
		`href="/v1`+target+`/files.tar"`, "out/*, log (may be missing)", "from https://data.example.org/ref.fa", "!the list</a>")
	b.Left = make([]web.ResultFile, 101)
	wants(t, target, get(t, h, target), "The first 100", "the list</a>")
}

// TestFilesOfAJobThatAreNotThere: yet, or any more, or that nobody wants.
func TestFilesOfAJobThatAreNotThere(t *testing.T) {
	b := webtest.New(5, 60)
	target, plain := "/jobs/"+leaving(b).ID.String(), "/jobs/"+b.Some(501, "plain", "succeeded", nil).ID.String()
	b.Submit(b.Some(501, "plain", "succeeded", map[string]uint32{"succeeded": 1}))
	b.Left = []web.ResultFile{}
	h := newPages(t, b)
	wants(t, target, get(t, h, target), "None is here yet")
	wants(t, plain, get(t, h, plain), "!have left", "!Outputs")
	b.LeftErr = node.ErrResultsGone
	wants(t, target, get(t, h, target), `<p class="empty">`, "!None is here yet", "!archive")
}

// TestFilesThatASiteKeeps are summed up on the first page.
func TestFilesThatASiteKeeps(t *testing.T) {
	h := newPages(t, webtest.New(5, 60))
	wants(t, "/", get(t, h, "/"), "Files kept at site-001", "5.0 GiB <small>of 100.0 GiB, 1,234 files", "1.0 MiB <small>of 50.0 GiB, 1 file<")
}
