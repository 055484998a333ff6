package jobcmd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

// TestJobGraph shows the jobs around one as a table, for Graphviz, and as the API has them.
func TestJobGraph(t *testing.T) {
	g := wire.JobGraph{
		Job: "site-1.2",
		Nodes: []wire.GraphNode{
			{Job: "site-1.1", State: "unknown", Gone: true, Side: "before"},
			{Job: "site-1.2", Name: `a "b" \`, State: "running", Side: "itself", MoreBefore: 2, MoreAfter: 9},
			{Job: "site-1.3", Name: "merge", State: "queued", Held: true, Side: "after"},
		},
		Edges: []wire.GraphEdge{{Job: "site-1.2", After: "site-1.1", When: "any"}, {Job: "site-1.3", After: "site-1.2", When: "ok"}},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/jobs/site-1.2/graph" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(g)
	}))
	defer srv.Close()
	for flag, want := range map[string]string{
		"--graph": `JOB       WHERE     NAME     STATE                     AFTER         NOT SHOWN
site-1.1  before    -        unknown (no longer kept)  -             -
site-1.2  this job  a "b" \  running                   site-1.1:any  2 before, 9 after
site-1.3  after     merge    held                      site-1.2      -
`,
		"--graph=dot": `digraph "site-1.2" {
  rankdir=LR;
  node [shape=box];
  "site-1.1" [label="site-1.1\nunknown (no longer kept)"];
  "site-1.2" [label="a \"b\" \\\nsite-1.2\nrunning\nnot shown: 2 before, 9 after", style=bold];
  "site-1.3" [label="merge\nsite-1.3\nheld"];
  "site-1.1" -> "site-1.2" [label="any"];
  "site-1.2" -> "site-1.3" [label="ok"];
}
`,
	} {
		code, out, stderr := runCLI(t, "", "job", "site-1.2", flag, "--addr", srv.URL)
		if code != 0 || out != want {
			t.Errorf("%s: %d %s\n%s", flag, code, stderr, out)
		}
	}
	code, out, _ := runCLI(t, "", "job", "site-1.2", "--graph", "-o", "json", "--addr", srv.URL)
	if code != 0 || !strings.Contains(out, `"more_after": 9`) {
		t.Errorf("%d %s", code, out)
	}
	if code, _, stderr := runCLI(t, "", "job", "site-1.2", "--graph=png", "--addr", srv.URL); code != 2 || !strings.Contains(stderr, "table or dot") {
		t.Errorf("%d %s", code, stderr)
	}
}
