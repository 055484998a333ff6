package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
)

// TestWatch shows a job each time it changes, and ends with it.
func TestWatch(t *testing.T) {
	var mu sync.Mutex
	states, asked := []string{"queued", "queued", "running", "succeeded"}, []string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.RawQuery)
		if len(asked) == 2 { // a restart is waited for
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:stopping","status":503}`)
			return
		}
		w.Header().Set(wire.HeaderIndex, fmt.Sprint(len(asked)))
		fmt.Fprintf(w, `{"id":"site-1.1","state":%q,"spec":{}}`, states[0])
		states = states[1:]
	}))
	defer srv.Close()
	code, out, errs := runCLI(t, "", "job", "site-1.1", "--watch", "-o", "json", "--addr", srv.URL)
	var seen []string
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var j wire.Job
		if err := dec.Decode(&j); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, j.State)
	}
	if code != 0 || fmt.Sprint(seen) != "[queued running succeeded]" || !strings.Contains(errs, "trying again") {
		t.Errorf("exit %d, saw %v: %s", code, seen, errs)
	}
	if want := "[ home=0&index=1&wait=5s home=0&index=1&wait=5s home=0&index=3&wait=5s home=0&index=4&wait=5s]"; fmt.Sprint(asked) != want {
		t.Errorf("asked %v\nwant %s", asked, want)
	}
	if code, _, errs := runCLI(t, "", "job", "site-1.2", "-w", "--addr", clitest.Broker(t)); code != cli.ExitNotFound {
		t.Errorf("an unknown job: exit %d %s", code, errs)
	}
}

// TestEventsCommand prints events for people and for programs.
func TestEventsCommand(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := "follow=false&from=7&kind=job&kind=task"; r.URL.RawQuery != want {
			t.Errorf("asked %s, want %s", r.URL.RawQuery, want)
		}
		for _, data := range []string{
			`{"id":"8.1","index":8,"kind":"job.submitted","job":"site-1.1","count":2}`,
			`{"id":"8.2","index":8,"kind":"task.ended","job":"site-1.1","task":3,"count":4,"outcome":"cancelled","reason":"by its\nowner"}`,
			`{"id":"9.1","index":9,"kind":"task.ended","job":"site-1.1","task":0,"count":1,"attempt":2,"site":"site-2","outcome":"failed","exit_code":3,"run_ms":1500}`,
			`{"id":"9.3","index":9,"kind":"job.ended","job":"site-1.2","count":1,"outcome":"succeeded"}`,
			`{"id":"9.2","index":9,"kind":"site.offered","site":"site-2","resources":{"cpu":1.5}}`,
		} {
			fmt.Fprintf(w, "event: x\ndata: %s\n\n", data)
		}
		_, _ = io.WriteString(w, "event: reset\ndata: {\"id\":\"11\",\"index\":11,\"reason\":\"too old\"}\n\n")
	}))
	defer srv.Close()
	args := []string{"events", "--once", "--from", "7", "--kind", "job", "--kind", "task", "--addr", srv.URL}
	code, out, errs := runCLI(t, "", args...)
	const want = `-       8  job.submitted     site-1.1 (2 tasks)
-       8  task.ended        site-1.1/3–6 cancelled (by its owner)
-       9  task.ended        site-1.1/0 attempt 2 at site-2 failed exit 3 after 1.5 s
-       9  job.ended         site-1.2 (1 task) succeeded
-       9  site.offered      site-2 lends 1.5 cores
`
	if code != 0 || out != want || !strings.Contains(errs, "events missed: too old") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, _ = runCLI(t, "", append(args, "-o", "json")...); code != 0 || strings.Count(out, "\n") != 5 ||
		!strings.HasPrefix(out, `{"id":"8.1",`) {
		t.Errorf("exit %d\n%s", code, out)
	}
}
