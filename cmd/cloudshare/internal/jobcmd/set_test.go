package jobcmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// TestSet: what the broker is asked for, and what is shown of one job, of many, and of those that were not changed.
func TestSet(t *testing.T) {
	var asked string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/whoami" {
			_, _ = fmt.Fprint(w, `{"site":"a","user":"alice","role":"user"}`)
			return
		}
		query, _ := url.QueryUnescape(r.URL.RawQuery)
		asked += r.Method + " " + r.URL.Path + "?" + query
		switch {
		case r.URL.Path == "/v1/jobs/a.1/priority":
			w.WriteHeader(http.StatusAccepted)
			_, _ = fmt.Fprint(w, `{"id":"a.1","state":"queued","spec":{"priority":-5}}`)
		case strings.HasPrefix(r.URL.Path, "/v1/jobs/"):
			w.WriteHeader(http.StatusConflict)
			_, _ = fmt.Fprint(w, `{"type":"urn:cloudshare:problem:already-ended","title":"The job has ended","status":409}`)
		default:
			_, _ = fmt.Fprint(w, `{"items":[{"job":"a.1","state":"queued","priority":10},{"job":"a.2","priority":0,`+
				`"problem":{"type":"urn:cloudshare:problem:already-ended","title":"The job has ended","status":409}}],"more":false}`)
		}
	}))
	defer srv.Close()
	const both, one = "a.1  queued  10\n", "1 of 2 were not changed"
	for line, want := range map[string]struct {
		code             int
		asked, out, errs string
	}{
		"a.1 --priority -5":               {0, "POST /v1/jobs/a.1/priority?priority=-5", "a.1  queued  -5\n", ""},
		"a.2 --priority=1":                {cli.ExitRefused, "POST /v1/jobs/a.2/priority?priority=1", "", "The job has ended"},
		"a.1 a.2 --priority 10":           {cli.ExitRefused, "POST /v1/priority?job=a.1&job=a.2&priority=10", both, one},
		"--label s=17 --priority 10":      {cli.ExitRefused, "POST /v1/priority?label=s=17&priority=10", both, "a.2: The job has ended"},
		"--mine --priority 10":            {cli.ExitRefused, "POST /v1/priority?priority=10&user=alice", both, one},
		"--user bob --priority 10":        {cli.ExitRefused, "POST /v1/priority?priority=10&user=bob", both, one},
		"a.1":                             {cli.ExitUsage, "", "", "say what to change: --priority N"},
		"--priority 1":                    {cli.ExitUsage, "", "", "name jobs, or --label"},
		"a.1 --mine --priority 1":         {cli.ExitUsage, "", "", "one of them"},
		"a.1 --priority high":             {cli.ExitUsage, "", "", "priority"},
		"a.1 --priority 99999999999":      {cli.ExitUsage, "", "", "priority"},
		"--mine --user bob --priority 10": {cli.ExitUsage, "", "", "one of them"},
	} {
		asked = ""
		code, out, errs := runCLI(t, "", append([]string{"set", "--addr", srv.URL}, strings.Fields(line)...)...)
		if code != want.code || asked != want.asked || out != want.out || !strings.Contains(errs, want.errs) {
			t.Errorf("set %s: exit %d, asked %q, shows %q, stderr %s", line, code, asked, out, errs)
		}
	}
}

// TestWhyTellsOfNotices: who was to be told of a job's end and was not is said, with the job's priority.
func TestWhyTellsOfNotices(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"id":"a.1","state":"succeeded","summary":"none of its tasks waits: succeeded","priority":7,`+
			`"notices":[{"url":"https://h/x","on":["ended"],"state":"given up","attempts":9,"outcome":"503 from h"}],`+
			`"ahead":null,"estimate":{}}`)
	}))
	defer srv.Close()
	code, out, errs := runCLI(t, "", "why", "a.1", "--addr", srv.URL)
	for _, want := range []string{"not told of its end", "https://h/x: given up after attempt 9, 503 from h", "priority", "7"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s is missing: exit %d\n%s%s", want, code, out, errs)
		}
	}
}
