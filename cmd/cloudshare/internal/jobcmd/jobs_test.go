package jobcmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// sparse is a broker whose answers to a list are empty but for every fifth one,
// of last in all; it notes the limits that it was asked for.
func sparse(t *testing.T, last int, limits *[]string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		*limits = append(*limits, q.Get("limit"))
		at, _ := strconv.Atoi(q.Get("cursor"))
		items, next := "", ""
		if at%5 == 4 {
			items = fmt.Sprintf(`{"id":"site-1.%d","state":"running"}`, at)
		}
		if at++; at < last {
			next = strconv.Itoa(at)
		}
		fmt.Fprintf(w, `{"items":[%s],"next":%q}`, items, next)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// Found by review: with 100,000 queued jobs before it, a running one was not
// listed: the answer was a heading and a cursor.
func TestFilteredListsGoOn(t *testing.T) {
	var limits []string
	code, out, errs := runCLI(t, "", "jobs", "--addr", sparse(t, 1000, &limits), "--state", "running", "--limit", "3")
	if code != 0 || strings.Count(out, "site-1.") != 3 || errs != "more: --cursor 15\n" || strings.Join(limits[3:10], " ") != "3 3 2 2 2 2 2" {
		t.Errorf("exit %d, limits %v: %s%s", code, limits, out, errs)
	}
	code, out, errs = runCLI(t, "", "jobs", "--addr", sparse(t, 17, &limits), "--state", "running")
	if code != 0 || strings.Count(out, "site-1.") != 3 || errs != "" {
		t.Errorf("to the end: exit %d: %s%s", code, out, errs)
	}
	code, out, errs = runCLI(t, "", "jobs", "--addr", sparse(t, 1000, &limits), "--state", "running", "--limit", "1000", "-o", "json")
	if code != 0 || strings.Count(out, "site-1.") != mostPages/5 || !strings.Contains(out, `"next": "100"`) {
		t.Errorf("json: exit %d: %s%s", code, out, errs)
	}
	code, _, errs = runCLI(t, "", "jobs", "--addr", sparse(t, 1000, &limits), "--state", "running", "--limit", "1000")
	if code != 0 || errs != "only a part of the jobs was looked at (100 pages or 5s); go on with: --cursor 100\n" {
		t.Errorf("up to the bound: exit %d: %s", code, errs)
	}
}
