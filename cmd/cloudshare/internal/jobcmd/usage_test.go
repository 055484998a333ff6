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

// TestUsage shows what `usage` prints.
func TestUsage(t *testing.T) {
	answers := map[string]string{
		"/v1/jobs/site-1.1/usage": `{"id":"site-1.1","name":"render","attempts":3,"tasks":2,"core_hours":2,"cpu_hours":0.8,` +
			`"cpu_user_hours":0.75,"cpu_efficiency":0.8,"memory_mib":1024,"peak_memory_bytes":536870912,` +
			`"mean_peak_memory_bytes":268435456,"memory_efficiency":0.5,"in_bytes":1536,"out_bytes":8589934592,"measured_by":{"unknown":1,"cgroup":2},` +
			`"gaps":[{"reason":"a snapshot replaced entries 3 to 9"}]}`,
		"/v1/jobs/site-1.2/usage": `{"id":"site-1.2","measured_by":{},"gaps":[]}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := answers[r.URL.Path]; ok {
			_, _ = io.WriteString(w, text)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:not-found","title":"No such job","status":404}`)
	}))
	t.Cleanup(srv.Close)
	var all strings.Builder
	for _, c := range []struct {
		line string
		code int
	}{{"usage site-1.1", 0}, {"usage site-1.2", 0}, {"usage site-1.3", cli.ExitNotFound}, {"usage", cli.ExitUsage}} {
		code, out, errs := runCLI(t, "", append([]string{"--addr=" + srv.URL}, strings.Fields(c.line)...)...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d: %s", c.line, code, c.code, errs)
		}
		fmt.Fprintf(&all, "$ cloudshare %s\n%sstderr: %s\n", c.line, out, errs)
	}
	goldenfile.Match(t, "usage.txt", all.String())
}
