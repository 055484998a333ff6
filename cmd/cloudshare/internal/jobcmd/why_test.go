package jobcmd

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

// TestWhy shows what `why` and `submit --dry-run` print.
func TestWhy(t *testing.T) {
	const waits = `{"id":"site-1.1","site":"site-1","state":"queued","waiting":3,"summary":"4 tasks with 4 cores go first",` +
		`"turn":"site-2 goes first: it lent 412 core-hours more than it used; you lent 3 core-hours more than you used",` +
		`"ahead":{"place":5,"own":1,"others":3,"cpu":4,"sites":1,"exact":%t},"turns":[],` +
		`"sites":[{"site":"site-1","why":"rule","text":"excluded by the job's sites.only or sites.not"},` +
		`{"site":"site-2","why":"full","text":"full: m0 short of 2 cores; the next room goes to site-2.4"}],` +
		`"estimate":{"p50_seconds":90,"p90_seconds":5000.5,"from_waits":40,"calibrated":%t,"starts":8,"p90_held":0.875}}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && r.URL.RawQuery != "dry_run=true&strict=true":
			http.Error(w, "a submission", http.StatusTeapot)
		case r.Method == http.MethodPost, r.URL.Path == "/v1/jobs/site-1.2/why":
			_, _ = io.WriteString(w, `{"id":"","state":"running","waiting":1,"summary":"1 task would start at once at this site","ahead":null,"estimate":{}}`)
		case r.URL.Path == "/v1/jobs/site-1.1/why":
			fmt.Fprintf(w, waits, true, true)
		case r.URL.Path == "/v1/jobs/site-1.3/why":
			fmt.Fprintf(w, waits, false, false)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:not-found","title":"No such job","status":404}`)
		}
	}))
	t.Cleanup(srv.Close)
	var all strings.Builder
	for _, c := range []struct {
		line string
		code int
	}{
		{"why site-1.1", 0},
		{"why site-1.2", 0},
		{"why site-1.3", 0},
		{"why site-1.4", cli.ExitNotFound},
		{"submit --dry-run --strict -- true", 0},
		{"submit --dry-run --wait -- true", cli.ExitUsage},
		{"submit --dry-run --key k -- true", cli.ExitUsage},
		{"submit --dry-run -f -", cli.ExitUsage},
	} {
		code, out, errs := runCLI(t, "command: [a]\n---\ncommand: [b]\n", append([]string{"--addr=" + srv.URL}, strings.Fields(c.line)...)...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d: %s", c.line, code, c.code, errs)
		}
		fmt.Fprintf(&all, "$ cloudshare %s\n%sstderr: %s\n", c.line, out, errs)
	}
	goldenfile.Match(t, "why.txt", all.String())
}
